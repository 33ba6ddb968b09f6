package build

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
)

// failures are what commonly stops a build, by what the go command says of
// it, and what a person can do.
var failures = []struct {
	said   *regexp.Regexp
	advice string
}{
	{regexp.MustCompile(`requires go >= \S+ \(running go`),
		"Go is too old: install a newer one, or let it fetch one with GOTOOLCHAIN=auto"},
	{regexp.MustCompile(`no space left on device`),
		"the disk is full: a first build needs about 10 GB for the cache, Go's build cache and temporary files; " +
			"make room, or move them with GOVERNOR_CACHE, GOCACHE, GOMODCACHE and GOTMPDIR"},
	{regexp.MustCompile(`signal: killed`),
		"a compiler was killed, which the kernel does when memory runs out: linking needs about 3 GB"},
	{regexp.MustCompile(`checksum mismatch|SECURITY ERROR`),
		"a module is not what it was when its checksum was recorded: do not use it; if your proxy serves a changed copy, set GOPROXY to another"},
	{regexp.MustCompile(`missing go.sum entry|updates to go.mod needed`),
		"the pinned go.mod and go.sum do not fit together: this is a fault of localkube; refresh them with go generate ./build"},
	{regexp.MustCompile(`permission denied|read-only file system`),
		"a folder cannot be written: set GOVERNOR_CACHE, GOCACHE and GOMODCACHE to folders that can"},
	{regexp.MustCompile(`dial tcp|i/o timeout|TLS handshake|no such host|connection refused|proxyconnect|unexpected EOF|: (403|404|407|410|429|5\d\d) `),
		""},
}

// explain turns a failed go command into an error that says what to do.
func explain(verb, said string, err error) error {
	said = strings.TrimSpace(said)
	for _, f := range failures {
		if f.said.MatchString(said) {
			return fmt.Errorf("%s\n%s", advice(f.advice), indent(said))
		}
	}
	return fmt.Errorf("go %s: %w\n%s", verb, err, indent(said))
}

// advice for everything else that is recognised is about the proxy.
func advice(text string) string {
	if text != "" {
		return text
	}
	proxy := "unknown"
	if out, err := exec.Command("go", "env", "GOPROXY").Output(); err == nil {
		proxy = strings.TrimSpace(string(out))
	}
	return "modules could not be downloaded: check the network, and that GOPROXY (now " + proxy +
		") names a module proxy you can reach; behind an HTTP proxy set HTTPS_PROXY"
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(text, "\n", "\n    ")
}
