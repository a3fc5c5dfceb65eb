package cli

import (
	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
)

// autoFlags are the flags of a command that can have a model write something.
type autoFlags struct {
	name string // of the flag that asks for it
	on   bool
	r    home.AutoRequest
}

// register adds the flags. what completes "have the model …".
func (f *autoFlags) register(cmd *cobra.Command, name, what string) {
	f.name = name
	cmd.Flags().BoolVar(&f.on, name, false, "have the model "+what)
	cmd.Flags().StringVar(&f.r.Model, "model", "", "the model to use, as provider/model")
	cmd.Flags().StringVar(&f.r.Instructions, "instructions", "", "extra instructions for the model; - is standard input")
}

// request returns what was asked for, or nil. A person may also write it themselves: text is
// what they gave for it, and is read where they only said where it is.
func (f *autoFlags) request(a *app, text *string) (_ *home.AutoRequest, err error) {
	if *text, err = a.flagText(*text); err != nil {
		return nil, err
	}
	if !f.on {
		if f.r.Model != "" || f.r.Instructions != "" {
			return nil, misuse("--model and --instructions need --%s", f.name)
		}
		return nil, nil
	}
	f.r.Instructions, err = a.flagText(f.r.Instructions)
	return &f.r, err
}

// wroteIt says who wrote something and what that took, for the end of a line.
func wroteIt(r *home.AutoResult) string {
	if r == nil {
		return ""
	}
	line := "; written by " + render.ModelName(r.Provider, r.Model)
	if n := r.Usage.Context(); n > 0 {
		line += " with " + render.Counted(n, "token", "tokens")
	}
	return line
}

// sayAsked tells a person who waits what they wait for. A model that was not chosen is
// worth a word in any case.
func (a *app) sayAsked(n home.Notice) {
	switch {
	case n.ByDefault:
		a.say("note: no model is configured, so the built-in one writes the %s; it only copies what was said (%s chooses another)", n.For, a.command("config set model PROVIDER/MODEL", nil))
	case a.talkScreen != nil:
		a.say("asking %s for a %s", render.ModelName(n.Provider, n.Model), n.For)
	}
}
