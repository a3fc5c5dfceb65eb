package home

// Limit is the part of a home that a limited home has: the sessions with a tag, about a
// project, or whose keys begin alike. At most one member is set; the zero Limit is the whole
// home.
type Limit struct {
	// Tag selects the sessions that have this tag or one below it.
	Tag string `json:"tag,omitempty"`
	// Project selects the sessions about a directory of this name, as ListRequest.Project
	// does.
	Project string `json:"project,omitempty"`
	// Key selects the sessions whose keys begin like this.
	Key string `json:"key,omitempty"`
}

// String returns tag:T, project:P or key:K, or "" for the whole home.
func (l Limit) String() string {
	switch {
	case l.Tag != "":
		return "tag:" + l.Tag
	case l.Project != "":
		return "project:" + l.Project
	case l.Key != "":
		return "key:" + l.Key
	}
	return ""
}

// Check returns an error unless the limit can be used.
func (l Limit) Check() error {
	switch {
	case l.Tag != "" && l.Project != "":
		return exclude("tag", "project")
	case l.Tag != "" && l.Key != "":
		return exclude("tag", "key")
	case l.Project != "" && l.Key != "":
		return exclude("project", "key")
	case l.Tag != "":
		clean, err := cleanTags("tag", []string{l.Tag})
		if err == nil && clean[0] != l.Tag {
			err = wrong("tag", "{tag} begins or ends with white space")
		}
		return err
	}
	if err := checkUTF8("project", l.Project); err != nil {
		return err
	}
	return checkUTF8("key", l.Key)
}
