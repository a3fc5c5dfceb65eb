package dataset

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
)

// set is a data set: how to recognise its files, and how to read a record of one.
type set struct {
	name, title string
	// looks are the shapes that a file may have; one must fit. A shape is members that
	// must all be there, in the records of lines or of an array: "a|b" is one of two,
	// "!a" must be absent, "^a" is only looked for outside arrays, and "a:text" is a text.
	looks []string
	// turns are the members of a record that hold messages. All others are facts.
	turns []string
	read  func(r *reader, rec records.Record) error
	write func(context.Context, *transcript.Script, transcript.Env) (*transcript.Output, error)
	// run marks the runs of agents: they have no branches, and are named after their tasks.
	run bool
}

// sets are the data sets, the specific before the general.
func sets() []set {
	return []set{
		{
			name: sweAgent, title: "SWE-agent", run: true,
			looks: []string{
				"trajectory[].action|trajectory[].observation|trajectory[].response|trajectory_format",
				"history[].message_type|history[].agent history[].role|history[].content",
				"info.model_stats messages[].role|history[].role",
			},
			turns: []string{"history", "messages", "trajectory"}, read: readSWEAgent,
		},
		{
			name: openHands, title: "OpenHands", run: true,
			looks: []string{
				"history[].source history[].action history[].args", "history[].source history[].observation",
				"history[][].source history[][].action history[][].args", "history[][].source history[][].observation",
				"source action args", "source observation:text content",
			},
			turns: []string{"history"}, read: readOpenHands,
		},
		{
			name: tauBench, title: "tau-bench", run: true,
			looks: []string{"task_id traj", "task_id reward info"},
			turns: []string{"traj"}, read: readTauBench,
		},
		{
			name: sharegpt, title: "ShareGPT", // and LLaMA-Factory's additions: tools, pictures, pairs
			looks: []string{"conversations[].from|conversations[].role"},
			turns: []string{"conversations", "system", "chosen", "rejected"}, read: readShareGPT, write: writeShareGPT,
		},
		{
			name: llamaFactory, title: "LLaMA-Factory",
			looks: []string{"messages[].content[].value", "chosen_messages[].role rejected_messages"},
			turns: []string{"messages", "chosen_messages", "rejected_messages"}, read: readLlamaFactory,
		},
		{
			name: "alpaca", title: "Alpaca",
			looks: []string{"instruction output|chosen !^trajectory !^history[].source !^metrics"},
			turns: []string{"instruction", "input", "output", "system", "history", "chosen", "rejected"}, read: readAlpaca,
		},
		{name: oasst, title: "OpenAssistant", looks: []string{"message_tree_id"}, read: readOASST},
		{
			name: "lmsys", title: "LMSYS-Chat and WildChat",
			looks: []string{"conversation[].role conversation[].content"},
			turns: []string{"conversation"}, read: readChats,
		},
		{
			name: "preference", title: "preference pairs (hh-rlhf, DPO)",
			looks: []string{"chosen:text|chosen[]|chosen.role rejected !conversations !instruction"},
			turns: []string{"chosen", "rejected", "prompt", "messages"}, read: readPreference,
		},
		{
			name: "ultrachat", title: "UltraChat",
			looks: []string{"data[]:text id !object !^type !^timestamp !^data[].id !^data[].type"},
			turns: []string{"data"}, read: readUltraChat,
		},
		{
			name: "mt-bench", title: "MT-bench",
			looks: []string{"question_id turns[]|choices[].turns[]"},
			turns: []string{"turns", "choices"}, read: readMTBench,
		},
		{
			name: "bfcl", title: "Berkeley Function-Calling Leaderboard",
			looks: []string{"question[][].role"},
			turns: []string{"question"}, read: readBFCL,
		},
	}
}

// Formats returns the formats of all data sets.
func Formats() []*transcript.Format {
	var formats []*transcript.Format
	for _, s := range sets() {
		formats = append(formats, &transcript.Format{
			Name: s.name, Title: s.title, Write: s.write,
			Detect: func(f *transcript.File) bool {
				seen := shape.OfFile(f)
				return slices.ContainsFunc(s.looks, func(look string) bool { return fits(seen, look) })
			},
			Read: func(ctx context.Context, f *transcript.File, to transcript.Sink) error {
				r := &reader{set: s, file: f, to: to}
				return records.Each(ctx, f, to, func(rec records.Record) error { return s.read(r, rec) })
			},
		})
	}
	return formats
}

// fits reports whether a file has that shape.
func fits(s *shape.Shape, look string) bool {
	for _, term := range strings.Fields(look) {
		term, absent := strings.CutPrefix(term, "!")
		there := slices.ContainsFunc(strings.Split(term, "|"), func(path string) bool {
			path, outside := strings.CutPrefix(path, "^")
			return s.Has(path) || !outside && s.Has("[]."+path)
		})
		if there == absent {
			return false
		}
	}
	return true
}

// reader reads one file.
type reader struct {
	set
	file *transcript.File
	to   transcript.Sink

	questions map[string]loose.Value // of MT-bench, by their id; nil until they are needed
	events    *eventReader           // of an OpenHands file that holds events, not runs
}

func bad(why string) error { return records.Bad(errors.New(why)) }
