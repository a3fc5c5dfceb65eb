// Package crush reads the sessions of Crush: a database in each project.
package crush

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/place"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/sqlitefile"
	"github.com/coppice-dev/coppice/transcript/internal/walk"
)

// Format returns the format.
func Format() *transcript.Format {
	return &transcript.Format{Name: "crush", Title: "Crush", Detect: detect, Read: read, Places: places}
}

const databaseFile = "crush.db"

// places returns the databases of the projects that Crush remembers.
func places(env transcript.Env) []transcript.Place {
	list := filepath.Join(place.Data(env), "crush", "projects.json")
	f, err := transcript.OpenFile(list)
	if err != nil {
		return nil
	}
	v, err := records.Whole(f)
	if err != nil {
		return nil
	}
	var found []transcript.Place
	for p := range v.Get("projects").Items() {
		dir := cmp.Or(p.Get("data_dir").Text(), ".crush")
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(p.Get("path").Text(), dir)
		}
		found = append(found, transcript.Place{Dir: filepath.Join(dir, databaseFile)})
	}
	return found
}

func detect(f *transcript.File) bool {
	return sqlitefile.Has(f, "sessions", "messages.parts", "sessions.prompt_tokens")
}

func read(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	return sqlitefile.Read(ctx, f, func(db *sqlitefile.DB) error {
		return walk.Each(db.Rows(ctx, "sessions", "", "", "created_at"), func(row loose.Value) error {
			if strings.HasPrefix(row.Get("id").Text(), "title-") {
				to.Count("session that made a title", "left out", 1)
				return nil
			}
			return readSession(ctx, db, row, projectOf(f.Path), to)
		})
	})
}

// projectOf returns the project directory of a database, or "" if it is not where Crush puts
// it.
func projectOf(path string) string {
	if dir := filepath.Dir(path); filepath.Base(dir) == ".crush" {
		return filepath.Dir(dir)
	}
	return ""
}

func readSession(ctx context.Context, db *sqlitefile.DB, row loose.Value, cwd string, to transcript.Sink) error {
	c := transcript.Conversation{
		ID: row.Get("id").Text(), Title: row.Get("title").Text(), CWD: cwd,
		Created: row.Get("created_at").Time(time.UTC),
		Extra:   facts(row),
	}
	if parent := row.Get("parent_session_id").Text(); parent != "" {
		c.Parent, c.Relation = parent, session.RelationSubagent
		_, c.ParentCall, _ = strings.Cut(c.ID, "$$")
	}
	if err := to.Begin(c); err != nil {
		return err
	}
	if _, err := to.Keep("session "+c.ID, row); err != nil {
		return err
	}
	summary := row.Get("summary_message_id").Text()
	return walk.Each(db.Rows(ctx, "messages", "session_id", c.ID, "created_at"), func(m loose.Value) error {
		id := m.Get("id").Text()
		span, err := to.Keep("message "+id, m)
		if err != nil {
			return err
		}
		e := entry(m, summary)
		if e.Message != nil && len(e.Message.Content) == 0 {
			return nil
		}
		to.Count(m.Get("role").Text()+" message", string(e.Type), 1)
		return to.Add(transcript.Record{ID: id, Entry: e, From: []transcript.Span{span}})
	})
}

// facts are the numbers of a session as a whole: its total cost, and the tokens of its last
// step, which are not totals.
func facts(row loose.Value) map[string]any {
	found := make(map[string]any)
	for _, name := range []string{"cost", "prompt_tokens", "completion_tokens"} {
		if v := row.Get(name); v.Number() > 0 {
			found[name] = v.Any()
		}
	}
	if todos := sqlitefile.JSON(row.Get("todos")); todos.First() != nil {
		found["todos"] = todos.Any()
	}
	return found
}
