package docstest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/governor-dev/governor/test/docstest"
)

const folder = "../../docs/authoring"

// blocks returns the blocks of all pages.
func blocks(t *testing.T) (all []docstest.Block) {
	t.Helper()
	pages, err := docstest.Pages(folder)
	if err != nil || len(pages) < 7 {
		t.Fatalf("the guide has the pages %q, %v", pages, err)
	}
	for _, page := range pages {
		of, err := docstest.Read(filepath.Join(folder, page))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, of...)
	}
	return all
}

// Every block is tested: by the scaffold's tests if it needs no cluster, and by the e2e
// tests otherwise.
func TestEveryBlockIsTested(t *testing.T) {
	for _, b := range blocks(t) {
		if b.Runner() == "" {
			t.Errorf("nothing tests %s", b)
		}
		for _, w := range b.Words {
			known := slices.Contains([]string{"test", "cluster", "undo", "kit", b.File()}, w) || b.Value("exit") != "" || b.Value("quote") != ""
			if !known {
				t.Errorf("%s: unknown word %q", b, w)
			}
		}
		if b.Has("test") && b.Has("cluster") {
			t.Errorf("%s has both test and cluster", b)
		}
	}
}

// Every quote is in its file, word for word.
func TestQuotes(t *testing.T) {
	n := 0
	for _, b := range blocks(t) {
		if b.Runner() != "quote" {
			continue
		}
		n++
		raw, err := os.ReadFile(filepath.Join("../..", b.Value("quote")))
		if err != nil || !strings.Contains(string(raw), b.Text) {
			t.Errorf("%s is not in %s, %v", b, b.Value("quote"), err)
		}
	}
	if n < 4 {
		t.Errorf("only %d quotes were found", n)
	}
}

func TestRunnerRejectsUntestableBlocks(t *testing.T) {
	for name, b := range map[string]docstest.Block{
		"NoLanguage":  {Page: "walk.md"},
		"NoCluster":   {Page: "mistakes.md", Language: "sh", Words: []string{"cluster"}},
		"OtherPage":   {Page: "steps.md", Language: "sh"},
		"Unnamed":     {Page: "walk.md", Language: "go"},
		"Unknown":     {Page: "walk.md", Language: "yaml", Words: []string{"a.yaml"}},
		"NamelessRef": {Page: "steps.md", Language: "go", Words: []string{"quote="}},
	} {
		if runner := b.Runner(); runner != "" {
			t.Errorf("%s: %s", name, runner)
		}
	}
}
