package adk_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/coppice-dev/coppice/adapter/adk"
	"github.com/coppice-dev/coppice/store/file"
)

// A session of ADK in a directory. A runner does the same: give the service to
// runner.Config as its SessionService.
func Example() {
	dir, err := os.MkdirTemp("", "adk")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	st, err := file.Open(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()

	ctx := context.Background()
	service := adk.New(st, nil)
	created, err := service.Create(ctx, &session.CreateRequest{AppName: "garden", UserID: "ada", SessionID: "roses"})
	if err != nil {
		log.Fatal(err)
	}
	event := session.NewEvent(ctx, "invocation")
	event.Author = "user"
	event.LLMResponse = model.LLMResponse{Content: genai.NewContentFromText("When do I prune roses?", genai.RoleUser)}
	event.Actions.StateDelta["user:plants"] = "roses"
	if err := service.AppendEvent(ctx, created.Session, event); err != nil {
		log.Fatal(err)
	}

	got, err := service.Get(ctx, &session.GetRequest{AppName: "garden", UserID: "ada", SessionID: "roses", NumRecentEvents: 20})
	if err != nil {
		log.Fatal(err)
	}
	for e := range got.Session.Events().All() {
		fmt.Printf("%s: %s\n", e.Author, e.Content.Parts[0].Text)
	}
	plants, err := got.Session.State().Get("user:plants")
	fmt.Println(plants, err)
	// Output:
	// user: When do I prune roses?
	// roses <nil>
}
