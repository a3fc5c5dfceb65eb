package agent

import (
	"context"
	"log/slog"

	"github.com/coppice-dev/coppice/provider"
)

// Tracer gets a span for every turn, request and call. They are named by OpenTelemetry's
// conventions for generative AI, and carry names, counts and ids, never text. Package
// agent/tracing makes a Tracer of an OpenTelemetry tracer provider.
type Tracer interface {
	// Start begins a span below the one in ctx, and returns a context that has it. The
	// function ends it, with the error of what it is about and further attributes. Values are
	// texts, whole numbers and lists of texts.
	Start(ctx context.Context, name string, attributes ...slog.Attr) (context.Context, func(err error, attributes ...slog.Attr))
}

// noTracer is the tracer of an agent that has none.
type noTracer struct{}

func (noTracer) Start(ctx context.Context, _ string, _ ...slog.Attr) (context.Context, func(error, ...slog.Attr)) {
	return ctx, func(error, ...slog.Attr) {}
}

// traceTurn begins the span of a turn. The returned function ends it.
func (t *turn) traceTurn() func(error) {
	info := t.opts.Model.Info()
	ctx, end := t.tracer.Start(t.ctx, "invoke_agent",
		slog.String("gen_ai.operation.name", "invoke_agent"),
		slog.String("gen_ai.provider.name", info.Provider),
		slog.String("gen_ai.request.model", info.Model),
		slog.String("gen_ai.conversation.id", t.s.ID()),
	)
	t.ctx = ctx
	return func(err error) {
		end(err, append(errorType(err),
			slog.Int("gen_ai.usage.input_tokens", t.out.Usage.Context()-t.out.Usage.Output),
			slog.Int("gen_ai.usage.output_tokens", t.out.Usage.Output),
		)...)
	}
}

// traceRequest begins the span of a request.
func (t *turn) traceRequest(r *request) (context.Context, func(*provider.Response, error)) {
	info := t.opts.Model.Info()
	ctx, end := t.tracer.Start(t.ctx, "chat "+info.Model,
		slog.String("gen_ai.operation.name", "chat"),
		slog.String("gen_ai.provider.name", info.Provider),
		slog.String("gen_ai.request.model", info.Model),
		slog.Int("gen_ai.request.max_tokens", r.MaxTokens),
		slog.String("gen_ai.conversation.id", t.s.ID()),
	)
	return ctx, func(response *provider.Response, err error) {
		attributes := errorType(err)
		if response != nil && response.Message != nil {
			m := response.Message
			attributes = append(
				attributes,
				slog.String("gen_ai.response.id", m.ResponseID),
				slog.String("gen_ai.response.model", m.Model),
				slog.Any("gen_ai.response.finish_reasons", []string{m.StopReason}),
			)
			if u := m.Usage; u != nil {
				attributes = append(
					attributes,
					slog.Int("gen_ai.usage.input_tokens", u.Context()-u.Output),
					slog.Int("gen_ai.usage.output_tokens", u.Output),
					slog.Int("gen_ai.usage.cache_read.input_tokens", u.CacheRead),
					slog.Int("gen_ai.usage.cache_creation.input_tokens", u.CacheWrite),
				)
			}
		}
		end(err, attributes...)
	}
}

// traceCall begins the span of a call.
func (t *turn) traceCall(ctx context.Context, c Call) (context.Context, func(error)) {
	ctx, end := t.tracer.Start(ctx, "execute_tool "+c.Name,
		slog.String("gen_ai.operation.name", "execute_tool"),
		slog.String("gen_ai.tool.name", c.Name),
		slog.String("gen_ai.tool.call.id", c.ID),
		slog.String("gen_ai.tool.type", "function"),
	)
	return ctx, func(err error) { end(err, errorType(err)...) }
}

func errorType(err error) []slog.Attr {
	if err == nil {
		return nil
	}
	return []slog.Attr{slog.String("error.type", provider.KindOf(err))}
}
