package all_test

import (
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	_ "github.com/coppice-dev/coppice/transcript/all"
)

// TestStrangersAreNoConversations: what other programs write beside conversations, and what else
// lies about in directories, is not taken for a conversation.
func TestStrangersAreNoConversations(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"agent-a0ad.meta.json": `{"agentType":"general-purpose","description":"Find the callers"}`,
		"agent-b.meta.json":    `{"agentType":"general-purpose","spawnDepth":1}`,
		"package.json":         `{"name":"garden","version":"1.0.0","description":"plants trees","scripts":{"test":"node --test"},"author":"Ada"}`,
		"package-pretty.json":  "{\n  \"name\": \"garden\",\n  \"description\": \"plants trees\",\n  \"messages\": \"none\"\n}\n",
		"tsconfig.json":        `{"compilerOptions":{"strict":true},"include":["src"]}`,
		"manifest.json":        `{"manifest_version":3,"name":"x","description":"y","version":"1"}`,
		"composer.json":        `{"name":"a/b","description":"c","type":"library","require":{}}`,
		"schema.json":          `{"$id":"x","description":"a thing","properties":{"a":{"description":"b"}}}`,
		"openapi.json":         `{"openapi":"3.1.0","info":{"title":"x","description":"y"},"paths":{}}`,
		"tasks.json":           `{"version":"2.0.0","tasks":[],"inputs":[{"id":"a","description":"b","type":"promptString"}]}`,
		"settings.json":        `{"working_dir":"/home/ada","theme":"dark"}`,
		"packages.jsonl":       `{"name":"a","description":"b"}` + "\n" + `{"name":"c","description":"d","role":"x"}` + "\n",
		"members.jsonl":        `{"team":"a","description":"who is who"}` + "\n" + `{"note":"the \"role\" was \"created\""}` + "\n",
		"server.jsonl":         `{"level":"info","ts":1,"msg":"listening"}` + "\n" + `{"level":"warn","ts":2,"msg":"slow"}` + "\n",
		"pino.jsonl":           `{"level":30,"time":1,"pid":2,"hostname":"h","msg":"hello","message":"x"}` + "\n",
		"webhook.jsonl":        `{"id":"evt_1","type":"invoice.paid","timestamp":"2026-01-01T00:00:00Z","data":{"object":{"id":"in_1"}}}` + "\n",
		"analytics.jsonl":      `{"type":"session_start","id":"e1","timestamp":"2026-01-01T00:00:00Z","url":"https://example.org"}` + "\n",
		"clicks.jsonl":         `{"type":"tag","sessionId":"s1","name":"x"}` + "\n",
		"audit.jsonl":          `{"type":"user","sessionId":"s1","action":"login"}` + "\n",
		"weather.jsonl":        `{"source":"station 4","observation":12.5}` + "\n",
		"rewards.jsonl":        `{"task_id":1,"reward":0.5,"step":10}` + "\n",
		"series.json":          `{"id":"temperature","data":[1,2,3]}`,
		"page.json":            `{"id":"p1","data":[{"name":"a"},{"name":"b"}],"next":null}`,
		"parts.json":           `{"name":"car","parts":["wheel","door"]}`,
		"catalogue.json":       `[{"sku":"a","parts":[{"sku":"b"}]}]`,
		"embedding.json":       `{"model":"text-embedding-3-small","input":["a","b"],"encoding_format":"float"}`,
		"speech.json":          `{"model":"tts-1","input":"hello","voice":"alloy"}`,
		"train.json":           `{"model":{"layers":4},"input":{"width":28}}`,
		"forum.json":           `{"messages":[{"author":"ada","content":"hi"},{"author":"bob","content":"hello"}]}`,
		"i18n.json":            `{"key":"greeting","messages":{"en":"hello","de":"hallo"}}`,
		"apikey.json":          `{"key":"abc","created":"2026-01-01"}`,
		"users.json":           `[{"id":1,"created_at":"2026-01-01","last_active":"2026-02-01"}]`,
		"user.json":            `{"id":1,"created_at":"2026-01-01","last_active":"2026-02-01"}`,
		"cart.json":            `{"session":"abc","items":[{"sku":"a","n":1}]}`,
		"recipe.jsonl":         `{"id":7,"timestamp":"2026-01-01","instructions":"mix and bake"}` + "\n",
		"cake.jsonl":           `{"id":"r7","timestamp":"2026-01-01","title":"cake","instructions":"mix and bake"}` + "\n",
		"prices.json":          `{"history":[{"day":1,"price":2}],"lastUpdated":"2026-01-01"}`,
		"ballot.json":          `{"chosen":3,"rejected":2}`,
		"agents.json":          `{"history":[{"agent":"007","mission":"secret"}]}`,
		"session_index.json":   `{"pages":["a","b"]}`,
		"session_2024.json":    `{"speaker":"Ada","title":"Trees"}`,
		"index.json":           `{"pages":["a"]}`,
		"message/5.json":       `{"id":"5","type":"toast","text":"saved"}`,
		"queue.jsonl":          `{"type":"compacted","payload":"topic-1"}` + "\n",
		"geo.json":             `{"type":"FeatureCollection","features":[]}`,
		"notebook.ipynb":       `{"cells":[{"cell_type":"markdown","source":["# Trees"],"metadata":{}}],"metadata":{},"nbformat":4}`,
		"slack.json":           `[{"type":"message","user":"U1","text":"hi","ts":"1.2"}]`,
		"elastic-mapping.json": `{"mapping":{"properties":{"children":{"type":"nested"}}},"children":1}`,
		"har.json":             `{"log":{"version":"1.2","entries":[{"request":{"method":"GET"},"response":{"content":{"text":"x"}}}]}}`,
		"choices.json":         `{"choices":["a","b"],"question":"which?"}`,
		"form.json":            `{"question_id":4,"choices":["a","b"]}`,
		"lesson.json":          `{"instruction":"read","duration":3}`,
		"candidates.json":      `{"candidates":[{"name":"Ada","votes":4}]}`,
		"talk.json":            `{"conversation":"about trees","role":"host"}`,
		"empty.json":           `{}`,
		"list.json":            `[]`,
		"numbers.jsonl":        "1\n2\n3\n",
		"go.sum":               "a v1 h1:x\n",
		"readme.md":            "# Trees\n\nThey grow.\n",
		"data.csv":             "role,content\nuser,hi\n",
	} {
		if f := transcript.Detect(transcript.FileOf("/work/"+name, []byte(text))); f != nil {
			t.Errorf("%s is taken for %s: %s", name, f.Name, text)
		}
	}
}
