// Command terminal talks to the model of a running `coppice ipc`; /list lists the sessions.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"os"

	"github.com/coppice-dev/coppice/client/state"
	"github.com/coppice-dev/coppice/server/ipc"
)

type message struct {
	Type         string              `json:"type"`
	SessionID    string              `json:"session_id"`
	MessageCount int                 `json:"message_count"`
	Sessions     []state.SessionInfo `json:"sessions"`
	Content      string              `json:"content"` // of a piece of the answer
	Message      string              `json:"message"` // of an error
}

func main() {
	socket := flag.String("socket", ipc.SocketPath(os.Getenv), "the server's socket")
	restore := flag.String("restore", "", "the session to go on with")
	flag.Parse()
	conn, err := net.Dial("unix", *socket)
	if err != nil {
		log.Fatalf("%v: is coppice ipc running?", err)
	}
	var s state.State
	out, in := json.NewEncoder(conn), json.NewDecoder(conn)
	ask := func(what map[string]string, last string) { // and show the messages up to the last one
		err := out.Encode(what)
		for m := (&message{}); err == nil && m.Type != last && m.Type != "error"; {
			m = &message{}
			err = in.Decode(m)
			show(&s, m)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	if *restore != "" {
		ask(map[string]string{"type": "session_load", "session_id": *restore}, "session_loaded")
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if lines.Text() == "/list" {
			ask(map[string]string{"type": "session_list"}, "session_list_result")
		} else {
			ask(map[string]string{"type": "query", "query": lines.Text()}, "stream_complete")
		}
	}
}

func show(s *state.State, m *message) {
	switch m.Type {
	case "session_created":
		s.StartSession(m.SessionID)
	case "session_loaded":
		s.RestoreSession(m.SessionID, m.MessageCount)
		fmt.Printf("Restored session with %d messages\n", s.MessageCount)
	case "session_list_result":
		s.Remember(m.Sessions)
		for _, one := range s.Sessions() {
			fmt.Println(one.SessionID, one.UpdatedAt.Format("2006-01-02 15:04"), one.MessageCount, "messages", one.TotalTokens, "tokens")
		}
	case "stream_token":
		fmt.Print(m.Content)
	case "stream_complete":
		s.IncrementMessageCount() // what was said, and the answer
		s.IncrementMessageCount()
		fmt.Printf("\n%d messages\n", s.MessageCount)
	case "error":
		fmt.Println("error:", m.Message)
	}
}
