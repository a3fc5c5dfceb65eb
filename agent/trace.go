package agent

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/coppice-dev/coppice/provider"
)

// The spans are named by OpenTelemetry's conventions for generative AI. They carry
// names, counts and ids, never what was said.

// traceTurn begins the span of a turn. The returned function ends it.
func (t *turn) traceTurn() func(error) {
	info := t.opts.Model.Info()
	ctx, span := t.tracer.Start(t.ctx, "invoke_agent", trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "invoke_agent"),
		attribute.String("gen_ai.provider.name", info.Provider),
		attribute.String("gen_ai.request.model", info.Model),
		attribute.String("gen_ai.conversation.id", t.s.ID()),
	))
	t.ctx = ctx
	return func(err error) {
		span.SetAttributes(
			attribute.Int("gen_ai.usage.input_tokens", t.out.Usage.Context()-t.out.Usage.Output),
			attribute.Int("gen_ai.usage.output_tokens", t.out.Usage.Output),
		)
		endSpan(span, err)
	}
}

// traceRequest begins the span of a request.
func (t *turn) traceRequest(r *request) (context.Context, func(*provider.Response, error)) {
	info := t.opts.Model.Info()
	ctx, span := t.tracer.Start(t.ctx, "chat "+info.Model, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "chat"),
		attribute.String("gen_ai.provider.name", info.Provider),
		attribute.String("gen_ai.request.model", info.Model),
		attribute.Int("gen_ai.request.max_tokens", r.MaxTokens),
		attribute.String("gen_ai.conversation.id", t.s.ID()),
	))
	return ctx, func(response *provider.Response, err error) {
		if response != nil && response.Message != nil {
			m := response.Message
			span.SetAttributes(
				attribute.String("gen_ai.response.id", m.ResponseID),
				attribute.String("gen_ai.response.model", m.Model),
				attribute.StringSlice("gen_ai.response.finish_reasons", []string{m.StopReason}),
			)
			if u := m.Usage; u != nil {
				span.SetAttributes(
					attribute.Int("gen_ai.usage.input_tokens", u.Context()-u.Output),
					attribute.Int("gen_ai.usage.output_tokens", u.Output),
					attribute.Int("gen_ai.usage.cache_read.input_tokens", u.CacheRead),
					attribute.Int("gen_ai.usage.cache_creation.input_tokens", u.CacheWrite),
				)
			}
		}
		endSpan(span, err)
	}
}

// traceCall begins the span of a call.
func (t *turn) traceCall(ctx context.Context, c Call) (context.Context, func(error)) {
	ctx, span := t.tracer.Start(ctx, "execute_tool "+c.Name, trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "execute_tool"),
		attribute.String("gen_ai.tool.name", c.Name),
		attribute.String("gen_ai.tool.call.id", c.ID),
		attribute.String("gen_ai.tool.type", "function"),
	))
	return ctx, func(err error) { endSpan(span, err) }
}

func endSpan(span trace.Span, err error) {
	if err != nil {
		span.SetAttributes(attribute.String("error.type", provider.KindOf(err)))
		span.SetStatus(codes.Error, "")
	}
	span.End()
}
