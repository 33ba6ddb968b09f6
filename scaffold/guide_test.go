package scaffold_test

import (
	"path/filepath"
	"testing"

	"github.com/governor-dev/governor/test/docstest"
)

// The guide, page after page, as a reader without a cluster goes through it.
func TestScaffoldGuide(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a project, many times")
	}
	r := docstest.NewReader(t, root(t))
	for _, page := range append(docstest.ProjectPages, docstest.MistakesPage) {
		blocks, err := docstest.Read(filepath.Join(root(t), "docs/authoring", page))
		must(t, err)
		r.Follow(t, blocks)
	}
}
