// Package tracing sends the spans of an agent to OpenTelemetry:
//
//	a, err := agent.New(s, agent.Options{Model: model, Tracer: tracing.To(provider)})
//
// It links only the API of OpenTelemetry. A program without it links nothing of that.
package tracing

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/coppice-dev/coppice/agent"
)

// To returns a tracer whose spans go to an OpenTelemetry tracer provider.
func To(provider trace.TracerProvider) agent.Tracer {
	return tracer{provider.Tracer("github.com/coppice-dev/coppice/agent")}
}

type tracer struct{ to trace.Tracer }

func (t tracer) Start(ctx context.Context, name string, attributes ...slog.Attr) (context.Context, func(error, ...slog.Attr)) {
	kind := trace.SpanKindInternal
	for _, a := range attributes {
		if a.Key == "gen_ai.operation.name" && a.Value.String() == "chat" { // a request to a provider
			kind = trace.SpanKindClient
		}
	}
	ctx, span := t.to.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(converted(attributes)...))
	return ctx, func(err error, attributes ...slog.Attr) {
		span.SetAttributes(converted(attributes)...)
		if err != nil {
			span.SetStatus(codes.Error, "") // its text may quote the conversation
		}
		span.End()
	}
}

func converted(attributes []slog.Attr) []attribute.KeyValue {
	var out []attribute.KeyValue
	for _, a := range attributes {
		key := attribute.Key(a.Key)
		switch v := a.Value.Any().(type) {
		case int64:
			out = append(out, key.Int64(v))
		case []string:
			out = append(out, key.StringSlice(v))
		default:
			out = append(out, key.String(a.Value.String()))
		}
	}
	return out
}
