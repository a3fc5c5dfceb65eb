package mcp

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
)

// sessionURI is the prefix of a session's URI; its id follows.
const sessionURI = "coppice://session/"

const sessionType = "text/plain"

func (f *face) addResources(s *sdk.Server) {
	s.AddResourceTemplate(&sdk.ResourceTemplate{
		URITemplate: sessionURI + "{id}{?cursor}", Name: "session", Title: "A past session", MIMEType: sessionType,
		Description: "The end of a session, up to 20,000 tokens, with a cursor for the rest.",
	}, f.readResource)
}

func (f *face) readResource(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	u, err := url.Parse(r.Params.URI)
	if err != nil {
		return nil, sdk.ResourceNotFoundError(r.Params.URI)
	}
	a, err := f.read(ctx, readRequest{
		Session: strings.TrimPrefix(u.Path, "/"),
		page:    page{Cursor: u.Query().Get("cursor"), MaxTokens: maxTokens},
	})
	if err != nil {
		if home.KindOf(err) == home.KindNotFound {
			return nil, sdk.ResourceNotFoundError(r.Params.URI)
		}
		return nil, f.worded(err)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: sessionType, Text: a.String()}}}, nil
}

// olderMissing is the code of a resource that does not exist in the versions of the protocol
// before listening. The SDK always uses the newer one.
const olderMissing = -32002

// missingResource gives the error of a resource that does not exist the code of the client's
// version.
func missingResource(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		result, err := next(ctx, method, r)
		wrong, ok := errors.AsType[*jsonrpc.Error](err)
		c, isServed := r.GetSession().(*sdk.ServerSession)
		if !ok || !isServed || !isMissing(wrong) || !isOlder(c) {
			return result, err
		}
		older := *wrong
		older.Code = olderMissing
		return nil, &older
	}
}

// isMissing reports whether an error says that a resource does not exist.
func isMissing(err *jsonrpc.Error) bool {
	missing, ok := errors.AsType[*jsonrpc.Error](sdk.ResourceNotFoundError(""))
	return ok && err.Code == missing.Code && err.Message == missing.Message
}

// worded returns an error for a client.
func (f *face) worded(err error) error {
	info := f.describe(err)
	code := jsonrpc.CodeInternalError
	if info.Kind == home.KindInvalid || info.Kind == home.KindNotFound {
		code = jsonrpc.CodeInvalidParams
	}
	return &jsonrpc.Error{Code: int64(code), Message: plain.Line(info.Error())}
}

// listSessions adds the sessions to the list of resources, page by page. The SDK lists only
// what was registered, and there may be any number of sessions.
func (f *face) listSessions(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		params, ok := r.GetParams().(*sdk.ListResourcesParams)
		if method != "resources/list" || !ok {
			return next(ctx, method, r)
		}
		after := ""
		if params != nil {
			after = params.Cursor
			params.Cursor = ""
		}
		result, err := next(ctx, method, r)
		listed, ok := result.(*sdk.ListResourcesResult)
		if err != nil || !ok {
			return result, err
		}
		if after != "" {
			listed.Resources = nil // they were on the first page
		}
		found, err := f.home.Sessions.List(ctx, home.ListRequest{After: after})
		if err != nil {
			return nil, f.worded(err)
		}
		for i := range found.Sessions {
			listed.Resources = append(listed.Resources, sessionResource(&found.Sessions[i]))
		}
		listed.NextCursor = found.Next
		return listed, nil
	}
}

func sessionResource(s *home.SessionInfo) *sdk.Resource {
	return &sdk.Resource{
		URI: sessionURI + url.PathEscape(s.ID), Name: render.ShortID(s.ID), Title: titleText(s.Title), MIMEType: sessionType,
		Description: plain.Line(s.Agent + ", " + render.Counted(s.Messages, "message", "messages") + ", " + when(s.Updated)),
		Annotations: &sdk.Annotations{LastModified: s.Updated.UTC().Format("2006-01-02T15:04:05Z")},
	}
}

// complete offers sessions for the arguments that name one.
func (f *face) complete(ctx context.Context, r *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	done := &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{}}}
	if name := r.Params.Argument.Name; name != "session" && name != "id" {
		return done, nil
	}
	found, err := f.home.Sessions.Suggest(ctx, home.SuggestRequest{Words: r.Params.Argument.Value, Limit: maxCompletions})
	if err != nil {
		return nil, f.worded(err)
	}
	for _, s := range found.Sessions {
		done.Completion.Values = append(done.Completion.Values, s.ID)
	}
	return done, nil
}

// maxCompletions is the maximum that the protocol allows.
const maxCompletions = 100
