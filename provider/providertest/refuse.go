package providertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
)

// This file knows by itself what models refuse, and with which words: it does not ask the table
// that says what they are sent. A model of another name refuses none of it.

// refusal is why a provider refuses a request.
type refusal struct {
	status            int // 0 is 400
	param, code, what string
}

func refuse(format string, args ...any) *refusal { return &refusal{what: fmt.Sprintf(format, args...)} }

func (r *refusal) of(param, code string) *refusal {
	r.param, r.code = param, code
	return r
}

// body returns the refusal in the words of a dialect.
func (r *refusal) body(dialect string) (status int, body string) {
	status = r.status
	if status == 0 {
		status = http.StatusBadRequest
	}
	var o rawjson.Members
	o.SetStr("message", r.what)
	switch dialect {
	case "anthropic":
		o.SetStr("type", "invalid_request_error")
		return status, string(members("type", "error", "error", o).JSON())
	case "google":
		o.Set("code", status)
		o.SetStr("status", "INVALID_ARGUMENT")
	default:
		o.SetStr("type", "invalid_request_error")
		for name, value := range map[string]string{"param": r.param, "code": r.code} {
			if o.Put(name, json.RawMessage("null")); value != "" {
				o.SetStr(name, value)
			}
		}
	}
	return status, string(members("error", o).JSON())
}

// refused returns why the model of a request refuses it, or nil.
func (s *Server) refused(dialect, path string, body []byte) *refusal {
	o := rawjson.MembersOf(body)
	switch dialect {
	case "anthropic":
		return s.anthropicRefusal(o)
	case "openai":
		return responsesRefusal(o)
	case "openai-chat":
		return chatRefusal(o)
	case "google":
		return geminiRefusal(path, o)
	}
	return nil
}

func is(pattern, model string) bool { return regexp.MustCompile(pattern).MatchString(model) }

// mustBeObject returns the first name of a schema that providers refuse at its top, or "".
func mustBeObject(schema json.RawMessage) string {
	o := rawjson.MembersOf(schema)
	for _, name := range []string{"oneOf", "allOf", "anyOf", "enum", "not"} {
		if o.Has(name) {
			return name
		}
	}
	if o.Str("type") != "object" {
		return "type"
	}
	return ""
}

func (s *Server) anthropicRefusal(o rawjson.Members) *refusal {
	model := o.Str("model")
	thinking := rawjson.MembersOf(o.Get("thinking"))
	kind, effort := thinking.Str("type"), rawjson.MembersOf(o.Get("output_config")).Str("effort")
	modern := is(`^claude-(opus-4-[78]|(opus|sonnet|haiku|fable|mythos)-5)`, model)
	old := is(`^claude-(3-7|(opus|sonnet|haiku)-4-(5|1|0|20))`, model)
	budget, _ := rawjson.Int(thinking.Get("budget_tokens"))
	most, _ := rawjson.Int(o.Get("max_tokens"))
	tools, _ := rawjson.Elements(o.Get("tools"))
	for i, tool := range tools {
		switch name := mustBeObject(rawjson.MembersOf(tool).Get("input_schema")); name {
		case "oneOf", "allOf", "anyOf":
			return refuse("tools.%d.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level", i)
		case "type":
			return refuse("tools.%d.custom.input_schema.type: Field required", i)
		}
	}
	switch n := strings.Count(string(o.JSON()), `"cache_control":{`); {
	case n > 4:
		return refuse("A maximum of 4 blocks with cache_control may be provided. Found %d.", n)
	case modern && kind == "enabled":
		return refuse(`"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`)
	case is(`^claude-(opus-4-[78]|opus-5-5|fable|mythos)`, model) && kind == "disabled":
		return refuse(`"thinking.type.disabled" is not supported for this model.`)
	case modern && (o.Has("temperature") || o.Has("top_p") || o.Has("top_k")):
		return refuse("`temperature` is deprecated for this model.")
	case old && kind == "adaptive":
		return refuse("adaptive thinking is not supported on this model")
	case old && effort != "":
		return refuse("This model does not support the effort parameter.")
	case kind == "adaptive" && thinking.Has("budget_tokens"):
		return refuse("thinking.adaptive.budget_tokens: Extra inputs are not permitted")
	case is(`^claude-(opus|sonnet)-4-6`, model) && effort == "xhigh":
		return refuse("output_config.effort: Input should be 'low', 'medium', 'high' or 'max'")
	case kind == "enabled" && budget < 1024:
		return refuse("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
	case kind == "enabled" && budget >= most:
		return refuse("`max_tokens` must be greater than `thinking.budget_tokens`.")
	case (kind == "enabled" || kind == "adaptive") && o.Has("temperature"):
		return refuse("`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.")
	}
	return s.changedThought(o)
}

// changedThought refuses thinking that has a signature which this server gave to other thinking.
func (s *Server) changedThought(o rawjson.Members) *refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	messages, _ := rawjson.Elements(o.Get("messages"))
	for i, message := range messages {
		blocks, _ := rawjson.Elements(rawjson.MembersOf(message).Get("content"))
		for j, raw := range blocks {
			block := rawjson.MembersOf(raw)
			if text, ok := s.signed[block.Str("signature")]; ok && block.Str("type") == "thinking" && text != block.Str("thinking") {
				return refuse("messages.%d.content.%d: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "+
					"These blocks must remain as they were in the original response.", i, j)
			}
		}
	}
	return nil
}

// efforts are those that OpenAI's models take; nil is any.
func efforts(model string) []string {
	for _, one := range []struct{ pattern, levels string }{
		{`^gpt-(3|4)|^gpt-5(\.\d)?-chat`, ""},
		{`^o\d`, "low medium high"},
		{`^gpt-5-pro`, "high"},
		{`^gpt-5-codex|^gpt-5\.1-codex($|-mini)`, "low medium high"},
		{`^gpt-5($|-)`, "minimal low medium high"},
		{`^gpt-5\.1$`, "none low medium high"},
		{`^gpt-5\.\d-pro`, "medium high xhigh"},
		{`^gpt-5\.(1-codex-max|2-codex|3-codex)`, "low medium high xhigh"},
		{`^gpt-5\.[2345]`, "none low medium high xhigh"},
		{`^gpt-5\.6`, "none low medium high xhigh max"},
	} {
		if is(one.pattern, model) {
			return append([]string{}, strings.Fields(one.levels)...)
		}
	}
	return nil
}

// openaiParameters refuses what both APIs of OpenAI refuse.
func openaiParameters(o rawjson.Members, param, effort string) *refusal {
	model := o.Str("model")
	taken := efforts(model)
	thinks := len(taken) > 0
	switch key := o.Str("prompt_cache_key"); {
	case len(key) > 64:
		return refuse("Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64, but got a string with length %d instead.", len(key)).
			of("prompt_cache_key", "string_above_max_length")
	case taken != nil && !thinks && effort != "":
		return refuse("Unsupported parameter: '%s' is not supported with this model.", param).of(param, "unsupported_parameter")
	case thinks && effort != "" && !slices.Contains(taken, effort):
		return refuse("Unsupported value: '%s' is not supported with the '%s' model. Supported values are: '%s'.", effort, model, strings.Join(taken, "', '")).
			of(param, "unsupported_value")
	case thinks && o.Has("temperature"):
		return refuse("Unsupported parameter: 'temperature' is not supported with this model.").of("temperature", "")
	case thinks && o.Has("max_tokens"):
		return refuse("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.").of("max_tokens", "unsupported_parameter")
	}
	return nil
}

func openaiTools(tools []rawjson.Members, place string) *refusal {
	for i, tool := range tools {
		if mustBeObject(tool.Get("parameters")) != "" {
			return refuse("Invalid schema for function '%s': schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.", tool.Str("name")).
				of(fmt.Sprintf(place, i), "invalid_function_parameters")
		}
	}
	return nil
}

func responsesRefusal(o rawjson.Members) *refusal {
	reasoning := rawjson.MembersOf(o.Get("reasoning"))
	if r := openaiParameters(o, "reasoning.effort", reasoning.Str("effort")); r != nil {
		return r
	}
	taken := efforts(o.Str("model"))
	if taken != nil && len(taken) == 0 && strings.Contains(string(o.Get("include")), "reasoning.encrypted_content") {
		return refuse("Encrypted content is not supported with this model.").of("include", "")
	}
	list, _ := rawjson.Elements(o.Get("tools"))
	var tools []rawjson.Members
	for _, tool := range list {
		tools = append(tools, rawjson.MembersOf(tool))
	}
	if r := openaiTools(tools, "tools[%d].parameters"); r != nil {
		return r
	}
	items, _ := rawjson.Elements(o.Get("input"))
	for _, raw := range items {
		item := rawjson.MembersOf(raw)
		if item.Str("type") == "reasoning" && item.Str("encrypted_content") == "" && string(o.Get("store")) == "false" {
			r := refuse("Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", item.Str("id"))
			r.status = http.StatusNotFound
			return r.of("input", "")
		}
	}
	return nil
}

func chatRefusal(o rawjson.Members) *refusal {
	effort, model := o.Str("reasoning_effort"), o.Str("model")
	if r := openaiParameters(o, "reasoning_effort", effort); r != nil {
		return r
	}
	list, _ := rawjson.Elements(o.Get("tools"))
	if len(list) > 0 && (is(`^gpt-5\.(2|4)$`, model) && effort != "" || is(`^gpt-5\.[56]`, model)) && effort != "none" {
		return refuse("Function tools with reasoning_effort are not supported for %s in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.", model).
			of("reasoning_effort", "")
	}
	var tools []rawjson.Members
	for _, tool := range list {
		tools = append(tools, rawjson.MembersOf(rawjson.MembersOf(tool).Get("function")))
	}
	return openaiTools(tools, "tools[%d].function.parameters")
}

// geminiLevels are the thinking levels of Gemini's models; nil is any.
func geminiLevels(model string) []string {
	for _, one := range []struct{ pattern, levels string }{
		{`^gemini-3-pro`, "low high"},
		{`^gemini-3\.1-pro|^gemini-3\.[678]-flash`, "low medium high"},
		{`^gemini-3(\.\d)?-flash`, "minimal low medium high"},
	} {
		if is(one.pattern, model) {
			return strings.Fields(one.levels)
		}
	}
	return nil
}

func geminiRefusal(path string, o rawjson.Members) *refusal {
	model := strings.TrimSuffix(path[strings.LastIndexByte(path, '/')+1:], ":streamGenerateContent")
	thinking := rawjson.MembersOf(rawjson.MembersOf(o.Get("generationConfig")).Get("thinkingConfig"))
	budget, hasBudget := rawjson.Int(thinking.Get("thinkingBudget"))
	level := thinking.Str("thinkingLevel")
	switch taken := geminiLevels(model); {
	case level != "" && hasBudget:
		return refuse("You can only set only one of thinking budget and thinking level.")
	case is(`^gemini-(2|1)`, model) && level != "":
		return refuse("Thinking level is not supported for this model.")
	case is(`^gemini-2\.5-pro`, model) && hasBudget && budget == 0:
		return refuse("Budget 0 is invalid. This model only works in thinking mode.")
	case is(`^gemini-2\.5-pro`, model) && hasBudget && budget != -1 && (budget < 128 || budget > 32768),
		is(`^gemini-2\.5-flash`, model) && hasBudget && budget != -1 && budget > 24576:
		return refuse("The thinking budget %d is invalid. Please choose a value between 128 and 32768.", budget)
	case taken != nil && level != "" && !slices.Contains(taken, level):
		return refuse("Thinking level %s is not supported for this model.", strings.ToUpper(level))
	case is(`^gemini-[34]`, model):
		return unsigned(o)
	}
	return nil
}

// unsigned refuses a step of the present turn whose first call has no signature.
func unsigned(o rawjson.Members) *refusal {
	contents, _ := rawjson.Elements(o.Get("contents"))
	for i := len(contents) - 1; i >= 0; i-- {
		content := rawjson.MembersOf(contents[i])
		parts, _ := rawjson.Elements(content.Get("parts"))
		said := false // by the user
		for j, raw := range parts {
			part := rawjson.MembersOf(raw)
			if said = said || content.Str("role") == "user" && part.Has("text"); !part.Has("functionCall") {
				continue
			}
			if part.Str("thoughtSignature") == "" {
				return refuse("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing "+
					"thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s` , position %d. "+
					"Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
					rawjson.MembersOf(part.Get("functionCall")).Str("name"), i+j)
			}
			break
		}
		if said {
			return nil
		}
	}
	return nil
}
