package tools

import (
	"github.com/coppice-dev/coppice/agent"
)

// Preview returns a file before and after a call of write or edit, for the person who
// approves it. ok is false if the call is another one, or would fail. The file may change
// before the call runs; the tools notice that themselves.
func Preview(workDir string, call agent.Call) (before, after string, ok bool) {
	d, err := openDir(workDir)
	if err != nil || call.Name != Write && call.Name != Edit {
		return "", "", false
	}
	p, err := d.pathIn(call.Name, call.Input)
	if err != nil {
		return "", "", false
	}
	content := d.contentOf(p)
	if call.Name == Write {
		in, err := agent.Arguments[writeInput](call.Input)
		return string(content), in.Content, err == nil
	}
	in, err := agent.Arguments[editInput](call.Input)
	if err != nil || in.check() != nil {
		return "", "", false
	}
	changed, _, err := in.apply(content)
	return string(content), string(changed), err == nil
}

// contentOf returns the content of a file, or nothing if there is no file.
func (d dir) contentOf(p path) []byte {
	at, err := d.open(p)
	if err != nil {
		return nil
	}
	defer at.close()
	content, err := at.content()
	if err != nil {
		return nil
	}
	return content
}
