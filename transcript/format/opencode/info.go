package opencode

import (
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
	"github.com/coppice-dev/coppice/transcript/internal/sqlitefile"
)

// fromRow turns a session's row into the document that its file would have.
func fromRow(row loose.Value) loose.Value {
	var o, at residue.Object
	for _, c := range []struct{ column, member string }{
		{"id", "id"},
		{"title", "title"},
		{"directory", "directory"},
		{"parent_id", "parentID"},
		{"share_url", "share"},
		{"agent", "agent"},
		{"slug", "slug"},
		{"version", "version"},
	} {
		if v := row.Get(c.column); v.Exists() {
			o.Set(c.member, v.Raw())
		}
	}
	if revert := sqlitefile.JSON(row.Get("revert")); revert.IsObject() {
		o.Set("revert", revert.Raw())
	}
	if v := row.Get("time_created"); v.Exists() {
		at.Set("created", v.Raw())
	}
	if v := row.Get("time_archived"); v.Exists() {
		at.Set("archived", v.Raw())
	}
	o.Set("time", at.JSON())
	return loose.Value(o.JSON())
}

// withID returns an object with the id that was in another column.
func withID(v loose.Value, id string) loose.Value {
	var o residue.Object
	o.Set("id", id)
	return loose.Value(append(o, v.Except("id")...).JSON())
}

// conversation returns what a session's file says about it as a whole.
func conversation(info loose.Value) transcript.Conversation {
	c := transcript.Conversation{
		ID: info.Get("id").Text(), Title: info.Get("title").Text(), CWD: info.Get("directory").Text(),
		Created: info.Get("time", "created").Time(time.UTC), Extra: info.Pick("slug", "version", "share", "agent"),
	}
	records.ChildOf(&c, info.Get("parentID").Text(), session.RelationSubagent)
	return c
}
