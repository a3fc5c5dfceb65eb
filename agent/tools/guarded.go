package tools

import (
	pathpkg "path"
	"slices"
)

// This file has the rule about files that may hold secrets. A call that reads one asks first,
// wherever the working directory is: in a home directory, keys lie beside the work.
//
// A file is guarded if its name, or that of a directory on the way, begins with a dot, or if
// its name is one under which programs keep keys and passwords. The dot files that projects
// publish are not guarded.

// isGuarded reports whether a path, relative or absolute, leads to a file that may hold secrets.
func isGuarded(name string) bool {
	names := split(name)
	return slices.ContainsFunc(names, isPrivateDot) || len(names) > 0 && keepsKeys(names[len(names)-1])
}

// isPrivateDot reports whether a name in a path begins with a dot and is not one that projects
// publish.
func isPrivateDot(name string) bool {
	return hidden(name) && name != "." && name != ".." && !matchesAny(published, name)
}

// keepsKeys reports whether the name of a file is one under which programs keep keys or
// passwords. A pattern for such names counts as one.
func keepsKeys(name string) bool { return matchesAny(keyFiles, name) }

func matchesAny(patterns []string, name string) bool {
	name = folded(name)
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, _ := pathpkg.Match(pattern, name) // our patterns are correct
		return ok
	})
}

// published are the dot files and directories that projects publish.
var published = []string{
	".github", ".gitlab", ".gitea", ".forgejo", ".circleci", ".buildkite", ".devcontainer", ".husky", ".changeset", ".storybook", ".well-known",
	".gitattributes", ".gitmodules", ".gitkeep", ".keep", ".mailmap", ".git-blame-ignore-revs", ".*ignore", ".editorconfig", ".nojekyll",
	".gitlab-ci.y*ml", ".travis.y*ml", ".appveyor.y*ml", ".cirrus.y*ml", ".readthedocs.y*ml", ".codecov.y*ml", ".pre-commit-*.y*ml",
	".*-version", ".version", ".tool-versions", ".nvmrc", ".browserslistrc", ".bazelrc", ".bazelversion",
	".clang-format", ".clang-tidy", ".clangd", ".rustfmt.toml", ".golangci.*", ".goreleaser.*", ".mockery.*",
	".prettierrc*", ".eslintrc*", ".stylelintrc*", ".babelrc*", ".swcrc", ".lintstagedrc*", ".commitlintrc*", ".mocharc*", ".nycrc*", ".jshintrc", ".jscsrc",
	".flake8", ".pylintrc", ".isort.cfg", ".coveragerc", ".style.yapf", ".rspec", ".rubocop*.y*ml", ".swiftlint.y*ml", ".swiftformat", ".luacheckrc",
	".shellcheckrc", ".yamllint*", ".markdownlint*", ".hadolint.y*ml", ".tflint.hcl", ".terraform.lock.hcl", ".codespellrc",
	".coppice.toml", ".cursorrules", ".windsurfrules", ".clinerules",
	".env.example", ".env.sample", ".env.template", ".env.dist", ".env.*.example",
}

// keyFiles are the names of files in which programs keep keys and passwords.
var keyFiles = []string{
	"id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", "ssh_host_*_key",
	"*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.ppk", "*.jks", "*.keystore", "*.gpg", "*.kdb", "*.kdbx", "*.keychain", "*.keychain-db", "*.ovpn",
	"credentials", "credentials.json", "credentials.csv", "credentials.xml", "credentials.toml", "credentials.y*ml", "client_secret*.json", "service-account*.json", "service_account*.json",
	"secret.json", "secret.y*ml", "secrets", "secrets.json", "secrets.toml", "secrets.y*ml", "*.env",
	"*.tfvars", "*.tfvars.json", "*.tfstate", "*.tfstate.backup", "kubeconfig", "*.kubeconfig",
	"htpasswd", "*.htpasswd", "_netrc", "master.key", "wallet.dat", "logins.json", "key[34].db", "cookies.sqlite", "login data",
}
