package claudecode

import (
	"context"

	"github.com/coppice-dev/coppice/transcript"
)

func write(ctx context.Context, s *transcript.Script, env transcript.Env) (*transcript.Output, error) {
	return nil, nil
}
