package docstest_test

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	fence   = regexp.MustCompile("(?ms)^```.*?^```")
	symbol  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinks: every relative link of the documentation leads to a file, and its fragment to a heading.
func TestLinks(t *testing.T) {
	const root = "../.."
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "*.md").Output()
	if err != nil {
		t.Fatal(err)
	}
	pages := strings.Fields(string(out))
	if len(pages) < 50 {
		t.Errorf("git lists %d pages", len(pages))
	}
	for _, page := range pages {
		text := fence.ReplaceAllString(read(t, filepath.Join(root, page)), "")
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			target, err := url.Parse(found[1])
			if err != nil || target.Scheme != "" {
				continue
			}
			path := filepath.Join(root, page)
			if target.Path != "" {
				path = filepath.Join(root, filepath.Dir(page), target.Path)
			}
			follow(t, page, found[1], path, target.Fragment)
		}
	}
}

func follow(t *testing.T, page, link, path, fragment string) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("%s links to %s, which does not exist", page, link)
		return
	}
	if fragment == "" || filepath.Ext(path) != ".md" {
		return
	}
	for _, h := range heading.FindAllStringSubmatch(fence.ReplaceAllString(read(t, path), ""), -1) {
		if anchor(h[1]) == fragment {
			return
		}
	}
	t.Errorf("%s links to %s, which is no heading", page, link)
}

// anchor is the fragment that GitHub gives to a heading.
func anchor(heading string) string {
	return strings.ReplaceAll(symbol.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
