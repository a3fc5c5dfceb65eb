package ipc

// AcceptUser makes a server take another user for its own.
func (s *Server) AcceptUser(uid int) { s.uid = uid }
