package transcript

import "context"

// Checked returns a format whose functions accept any arguments: nil is refused, and a
// missing environment is empty. So a format need not check its arguments itself.
func Checked(f *Format) *Format {
	if f == nil {
		return nil
	}
	checked := *f
	if detect := f.Detect; detect != nil {
		checked.Detect = func(file *File) bool { return file != nil && detect(file) }
	}
	if read := f.Read; read != nil {
		checked.Read = func(ctx context.Context, file *File, to Sink) error {
			if file == nil || to == nil {
				return errMissing("read", "a file, and a sink for what is in it")
			}
			return read(ctx, file, to)
		}
	}
	if write := f.Write; write != nil {
		checked.Write = func(ctx context.Context, s *Script, env Env) (*Output, error) {
			if s == nil || s.Context == nil {
				return nil, errMissing("write", "a script of a session")
			}
			return write(ctx, s, env.withVariables())
		}
	}
	if places := f.Places; places != nil {
		checked.Places = func(env Env) []Place { return places(env.withVariables()) }
	}
	return &checked
}

// withVariables returns an environment whose variables can be asked for.
func (e Env) withVariables() Env {
	if e.Getenv == nil {
		e.Getenv = func(string) string { return "" }
	}
	return e
}
