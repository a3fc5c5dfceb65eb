package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
)

// modelsCommand works without a network. It lists what can be known for certain, and says that
// there may be more.
func modelsCommand(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "models [TEXT]",
		Short: "List the models to choose from",
		Long: "Lists the model in the settings, the built-in one, and those whose price is known;\n" +
			"with TEXT, only those with TEXT in their names. It does not ask the providers: you\n" +
			"can use models that are not listed. Prices are in dollars per million tokens.",
		Example: "  coppice models claude\n" +
			"  coppice config set model anthropic/claude-sonnet-4-5\n" +
			"  coppice chat -m openai/gpt-5",
		RunE: func(_ *cobra.Command, args []string) error {
			return a.printModels(strings.ToLower(strings.Join(args, "")))
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	})
}

// printModels says which TEXT found nothing: without it, an empty list looks as if there were
// no models.
func (a *app) printModels(part string) error {
	found, err := a.settings.Models()
	if err != nil {
		return err
	}
	t := a.newTable("MODEL", "MODEL", ">WINDOW", ">INPUT", ">OUTPUT", "THINKS", "KEY", "")
	t.spare = []string{"THINKS", "WINDOW"}
	models := slices.DeleteFunc(found.Models, func(m home.KnownModel) bool { return !strings.Contains(strings.ToLower(m.Name()), part) })
	if len(models) == 0 {
		a.say("no model has %s in its name", part)
	}
	return printList(a, models, t, modelRow)
}

// modelRow has what is known about a model; "-" is for what is not.
func modelRow(m *home.KnownModel) []string {
	in, out, thinks, mark := "-", "-", yesNo(m.Thinks), ""
	if m.Priced {
		in, out = render.Money(int(m.InputMicroUSD)), render.Money(int(m.OutputMicroUSD))
	}
	if m.Window == 0 {
		thinks = "-"
	}
	if m.Default {
		mark = "default"
	}
	return []string{m.Name(), render.Count(int64(m.Window)), in, out, thinks, yesNo(m.Ready), mark}
}

// yesNo says in a table whether something is so.
func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// completeModel offers the models that coppice models lists. It works without a home: a chat
// may be the first thing that a person does.
func (a *app) completeModel(_ *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []cobra.Completion
	if settings, err := home.LoadSettings(a.getenv); err == nil {
		if found, err := settings.Models(); err == nil {
			for i := range found.Models {
				names = append(names, found.Models[i].Name())
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
