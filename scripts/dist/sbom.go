package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"net/url"
	"runtime/debug"
	"strings"
	"time"
)

// bill is a bill of materials in the form of SPDX 2.3. Only what we state is in it;
// https://spdx.github.io/spdx-spec/v2.3/ has the rest.
type bill struct {
	Version       string         `json:"spdxVersion"`
	License       string         `json:"dataLicense"` // of the bill itself
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Packages      []part         `json:"packages"`
	Relationships []relationship `json:"relationships"`
}

type creation struct {
	Created  time.Time `json:"created"`
	Creators []string  `json:"creators"`
}

// part is the program, or a module in it.
type part struct {
	ID        string      `json:"SPDXID"`
	Name      string      `json:"name"`
	Version   string      `json:"versionInfo"`
	File      string      `json:"packageFileName,omitempty"`
	Purpose   string      `json:"primaryPackagePurpose"`
	Location  string      `json:"downloadLocation"`
	Analyzed  bool        `json:"filesAnalyzed"`
	Checksums []checksum  `json:"checksums,omitempty"`
	Source    string      `json:"sourceInfo,omitempty"`
	Declared  string      `json:"licenseDeclared"`
	Refs      []reference `json:"externalRefs"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

// reference is how scanners look a part up.
type reference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	Of   string `json:"spdxElementId"`
	Kind string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

const unknown = "NOASSERTION"

// materials lists what a program is made of, as the linker wrote it into the program: its
// modules and the standard library. The document is that of the archive of this name.
func (r *release) materials(archive, executable string, binary []byte) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, err
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(binary))
	whole := newPart("program", info.Main.Path, r.version)
	whole.File, whole.Purpose, whole.Declared = executable, "APPLICATION", "Apache-2.0"
	whole.Checksums = []checksum{{"SHA256", sum}}
	b := bill{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: archive,
		// It must be the name of no other document.
		Namespace:     "https://" + info.Main.Path + "/spdx/" + archive + "-" + sum,
		Creation:      creation{r.time, []string{"Tool: " + program + "-dist"}},
		Packages:      []part{whole, newPart("stdlib", "stdlib", strings.TrimPrefix(info.GoVersion, "go"))},
		Relationships: []relationship{{"SPDXRef-DOCUMENT", "DESCRIBES", whole.ID}},
	}
	for i, m := range info.Deps {
		b.Packages = append(b.Packages, modulePart(i, m))
	}
	for _, p := range b.Packages[1:] {
		b.Relationships = append(b.Relationships, relationship{whole.ID, "DEPENDS_ON", p.ID})
	}
	text, err := json.MarshalIndent(b, "", "  ")
	return append(text, '\n'), err
}

func modulePart(i int, m *debug.Module) part {
	m = cmp.Or(m.Replace, m)
	p := newPart(fmt.Sprintf("module-%d", i+1), m.Path, m.Version)
	if m.Sum != "" {
		p.Source = "go.sum has " + m.Sum // the hash of a tree of files, which is no checksum of SPDX
	}
	return p
}

// newPart returns a part with what all of them have. In a package URL, Go's names are in
// lower case.
func newPart(id, name, version string) part {
	locator := "pkg:golang/" + strings.ToLower(name) + "@" + url.QueryEscape(version)
	return part{
		ID: "SPDXRef-" + id, Name: name, Version: version, Purpose: "LIBRARY", Location: unknown, Declared: unknown,
		Refs: []reference{{"PACKAGE-MANAGER", "purl", locator}},
	}
}
