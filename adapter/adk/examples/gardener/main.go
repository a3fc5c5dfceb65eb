// Gardener is an agent of Google's Agent Development Kit whose sessions Coppice keeps. Run
// it twice: the second time it remembers. `coppice --home DIR ls`, search and export work
// on what it kept.
//
//	GOOGLE_API_KEY=… go run ./examples/gardener "Water the roses, please."
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/model/gemini"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/coppice-dev/coppice/adapter/adk"
	"github.com/coppice-dev/coppice/store/file"
)

type plant struct {
	Name string `json:"name"`
}

func main() {
	ctx := context.Background()
	m, err := gemini.NewModel(ctx, "gemini-2.5-flash", &genai.ClientConfig{APIKey: os.Getenv("GOOGLE_API_KEY")})
	if err == nil {
		err = garden(ctx, m, os.TempDir()+"/gardener", strings.Join(os.Args[1:], " "), os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// garden has the agent do what a person says, in the one session of this example.
func garden(ctx context.Context, m model.LLM, dir, text string, out io.Writer) (err error) {
	st, err := file.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	water, err := functiontool.New(functiontool.Config{Name: "water", Description: "Waters a plant."},
		func(ctx agent.Context, p plant) (map[string]any, error) {
			return map[string]any{"said": p.Name + " is wet"}, ctx.State().Set("wet "+p.Name, true)
		})
	if err != nil {
		return err
	}
	gardener, err := llmagent.New(llmagent.Config{Name: "gardener", Model: m, Instruction: "You look after a garden.", Tools: []tool.Tool{water}})
	if err != nil {
		return err
	}
	r, err := runner.New(runner.Config{AppName: "garden", Agent: gardener, SessionService: adk.New(st, nil), AutoCreateSession: true})
	if err != nil {
		return err
	}
	for event, err := range r.Run(ctx, "ada", "roses", genai.NewContentFromText(text, genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			return err
		}
		if event.Content == nil {
			continue // only state has changed
		}
		for _, part := range event.Content.Parts {
			fmt.Fprint(out, part.Text)
		}
	}
	fmt.Fprintln(out)
	return nil
}
