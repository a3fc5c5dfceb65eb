package agent_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/agent/tracing"
	"github.com/coppice-dev/coppice/session"
)

// recorder is a provider of traces that remembers the spans.
type recorder struct {
	noop.TracerProvider
	mu    sync.Mutex
	spans []*recordedSpan
}

type recordingTracer struct {
	noop.Tracer
	to *recorder
}

type recordedSpan struct {
	noop.Span
	to         *recorder
	name       string
	parent     string
	attributes []attribute.KeyValue
	failed     bool
	ended      bool
}

func (r *recorder) Tracer(string, ...trace.TracerOption) trace.Tracer {
	return recordingTracer{to: r}
}

func (t recordingTracer) Start(ctx context.Context, name string, o ...trace.SpanStartOption) (context.Context, trace.Span) {
	config := trace.NewSpanStartConfig(o...)
	span := &recordedSpan{to: t.to, name: name, attributes: config.Attributes()}
	if above, ok := trace.SpanFromContext(ctx).(*recordedSpan); ok {
		span.parent = above.name
	}
	t.to.mu.Lock()
	defer t.to.mu.Unlock()
	t.to.spans = append(t.to.spans, span)
	return trace.ContextWithSpan(ctx, span), span
}

func (s *recordedSpan) SetAttributes(a ...attribute.KeyValue) {
	s.to.mu.Lock()
	defer s.to.mu.Unlock()
	s.attributes = append(s.attributes, a...)
}

func (s *recordedSpan) SetStatus(c codes.Code, _ string) { s.failed = c == codes.Error }
func (s *recordedSpan) End(...trace.SpanEndOption)       { s.ended = true }

func TestSpans(t *testing.T) {
	t.Parallel()
	traces := &recorder{}
	bad := echo("bad")
	bad.Run = func(context.Context, agent.Call) (agent.Result, error) { return agent.Result{}, errors.New("no luck") }
	a := start(t, agent.Options{Tracer: tracing.To(traces), Tools: []agent.Tool{echo("one"), bad}})
	send(t, a, "call one {\"text\":\"a secret\"}\ncall bad {}")
	if _, err := a.Send(t.Context(), session.Text("fail unavailable")); err == nil {
		t.Error("the model must fail")
	}
	var names []string
	for _, s := range traces.spans {
		names = append(names, s.name)
		if !s.ended {
			t.Errorf("the span %s did not end", s.name)
		}
		if wants := strings.HasSuffix(s.name, "bad"); wants && !s.failed {
			t.Errorf("the span %s does not say that it failed", s.name)
		}
		if s.name != "invoke_agent" && s.parent != "invoke_agent" {
			t.Errorf("the span %s is under %q", s.name, s.parent)
		}
		for _, kv := range s.attributes {
			if strings.Contains(kv.Value.String(), "secret") {
				t.Errorf("%s = %s tells what was said", kv.Key, kv.Value.String())
			}
		}
	}
	slices.Sort(names)
	want := []string{"chat parrot", "chat parrot", "chat parrot", "chat parrot", "execute_tool bad", "execute_tool one", "invoke_agent", "invoke_agent"}
	if !slices.Equal(names, want) {
		t.Errorf("the spans are %q, want %q", names, want)
	}
}
