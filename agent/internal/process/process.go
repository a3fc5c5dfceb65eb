// Package process runs the programs of an agent: commands, and MCP servers.
package process

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-dev/coppice/redact"
)

// Environ returns the environment of this program without variables that look like a key, a
// token or a password, except for those in keep. A program that prints its environment would
// put them into the log, and a foreign program does not need them. The first call also hides
// them from other processes.
func Environ(keep ...string) []string {
	hide.Do(hideSecrets)
	return slices.DeleteFunc(os.Environ(), func(setting string) bool {
		name, _, _ := strings.Cut(setting, "=")
		return isSecret(setting) && !slices.Contains(keep, name)
	})
}

var hide sync.Once

// secretName matches the names of variables that hold secrets.
var secretName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(^|_)(keys?|token|pat|pass|psk|auth|cookies?|dsn)$|_pwd$|^sshpass$|^aws_session|session_?(token|cookie)|` +
		`secret|passw|passphrase|credential|api_?key|access_?key|private_?key|auth_?token`)
})

// isSecret reports whether a setting, "NAME=value", must not be passed on.
func isSecret(setting string) bool {
	name, value, _ := strings.Cut(setting, "=")
	return value != "" && (secretName().MatchString(name) || len(redact.Find([]byte(setting))) > 0)
}
