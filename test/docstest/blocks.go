// Package docstest tests the authoring guide. It runs the commands, makes the edits, and
// compares the output, as a reader would.
//
// The info string of a fenced block determines its test:
//
//	sh                  commands; "sh test" without a cluster, "sh cluster" with one, "exit=1" if they must fail
//	text                the output of the commands above; … matches anything
//	text kit            an error message of the test kit: package plannertest compares it
//	go FILE             a new file of the project
//	diff FILE           an edit of a file: hunks separated by @@, each found once; "undo" reverts it after the text below
//	go quote=FILE       a verbatim quote from a file of Governor
package docstest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ProjectPages lists the pages that build one project, with and without a cluster, in their
// order.
var ProjectPages = []string{"walk.md", "upgrade.md", "simulation.md"}

// MistakesPage is the page that continues that project, without a cluster.
const MistakesPage = "mistakes.md"

// Block is a fenced block of a page.
type Block struct {
	// Page and Line are the position of the block.
	Page string
	Line int
	// Language is the first word of the info string, Words are the others.
	Language string
	Words    []string
	// Text is the content.
	Text string
}

// String returns the position of the block.
func (b Block) String() string { return fmt.Sprintf("%s:%d (%s)", b.Page, b.Line, b.Language) }

// Has reports whether the info string contains the word.
func (b Block) Has(word string) bool { return slices.Contains(b.Words, word) }

// Value returns the value of name= in the info string, or "".
func (b Block) Value(name string) string {
	for _, w := range b.Words {
		if value, ok := strings.CutPrefix(w, name+"="); ok {
			return value
		}
	}
	return ""
}

// File returns the file that the block creates or edits; empty if there is none.
func (b Block) File() string {
	if len(b.Words) == 0 || strings.Contains(b.Words[0], "=") {
		return ""
	}
	return b.Words[0]
}

// Pages returns the names of all pages of the folder, sorted.
func Pages(folder string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.md"))
	for i := range paths {
		paths[i] = filepath.Base(paths[i])
	}
	return paths, err
}

// Read returns the fenced blocks of a page.
func Read(path string) (all []Block, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var open *Block
	for i, line := range strings.Split(string(raw), "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open == nil:
			words := strings.Fields(fence)
			open = &Block{Page: filepath.Base(path), Line: i + 1}
			if len(words) > 0 {
				open.Language, open.Words = words[0], words[1:]
			}
		case isFence:
			all, open = append(all, *open), nil
		case open != nil:
			open.Text += line + "\n"
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%s is not closed", open)
	}
	return all, nil
}

// Runner returns how the block is tested; empty if nothing tests it.
func (b Block) Runner() string {
	isProject := slices.Contains(ProjectPages, b.Page) || b.Page == MistakesPage && !b.Has("cluster")
	switch {
	case b.Language == "go" && b.Value("quote") != "":
		return "quote"
	case isProject && b.Language == "sh":
		return "commands"
	case b.Language == "text" && b.Has("kit"):
		return "kit"
	case isProject && b.Language == "text":
		return "output"
	case isProject && (b.Language == "go" || b.Language == "diff") && b.File() != "":
		return "edit"
	}
	return ""
}
