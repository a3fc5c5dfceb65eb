package home

import "testing"

// A key in the environment may be sent to this machine and over TLS. Nobody on the way
// to another machine may read it.
func TestKeyOfTheEnvironmentIsNotSentInTheClear(t *testing.T) {
	t.Parallel()
	s := &Settings{getenv: func(string) string { return "secret" }}
	for base, want := range map[string]bool{
		"": true, "https://gateway.example/v1": true, "http://localhost:1/v1": true, "http://127.0.0.1:1": true, "http://[::1]:1": true,
		"http://nas:11434/v1": false, "http://192.168.1.5:11434/v1": false, "http://localhost.example": false,
	} {
		key, err := s.key(modelSettings{
			SettingProvider: {SettingProvider, openAIChat, ""}, SettingBaseURL: {SettingBaseURL, base, ""},
		})
		if err != nil || (key != nil) != want {
			t.Errorf("%q: sent is %v, want %v (%v)", base, key != nil, want, err)
		}
	}
}
