// Package docstest does what the guide for authors says, as a reader would: it runs its commands, makes its edits, and
// compares what is shown. So a page cannot say what is not so.
//
// What a fenced block is follows from what is behind its fence:
//
//	sh                  commands; "sh test" where no cluster is, "sh cluster" where one is, "exit=1" for what must fail
//	text                what the commands above print; … is anything
//	text kit            what the test kit says of its own mistakes: package trial compares it
//	go FILE             a new file of the project
//	diff FILE           an edit of one: hunks with @@ between them, each found once; "undo" takes it back after the text below
//	go quote=FILE       what stands in a file of Governor's, word for word
package docstest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Afternoon are the pages through which one project goes, on a cluster and without one, in their order.
var Afternoon = []string{"walk.md", "upgrade.md", "simulation.md"}

// Mistakes is the page that goes on from there, without a cluster.
const Mistakes = "mistakes.md"

// Block is a fenced block of a page.
type Block struct {
	// Page and Line are where it begins.
	Page string
	Line int
	// Language is the word behind the fence, Words the others.
	Language string
	Words    []string
	// Text is what is in it.
	Text string
}

// String says where the block is.
func (b Block) String() string { return fmt.Sprintf("%s:%d (%s)", b.Page, b.Line, b.Language) }

// Has reports whether the word stands behind the fence.
func (b Block) Has(word string) bool { return slices.Contains(b.Words, word) }

// Value returns what stands behind name=, or nothing.
func (b Block) Value(name string) string {
	for _, w := range b.Words {
		if value, ok := strings.CutPrefix(w, name+"="); ok {
			return value
		}
	}
	return ""
}

// File is the file that the block is, or changes; empty if it is none.
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
		return nil, fmt.Errorf("%s has no end", open)
	}
	return all, nil
}

// Runner says who does what the block of a page says; empty if nobody does.
func (b Block) Runner() string {
	walked := slices.Contains(Afternoon, b.Page) || b.Page == Mistakes && !b.Has("cluster")
	switch {
	case b.Language == "go" && b.Value("quote") != "":
		return "quote"
	case walked && b.Language == "sh":
		return "commands"
	case b.Language == "text" && b.Has("kit"):
		return "kit"
	case walked && b.Language == "text":
		return "output"
	case walked && (b.Language == "go" || b.Language == "diff") && b.File() != "":
		return "edit"
	}
	return ""
}
