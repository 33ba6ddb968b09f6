package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// constant is a documented constant.
type constant struct{ name, value, block, doc string }

// section is a table of constants.
type section struct {
	title   string
	folders []string
	has     func(constant) bool
}

func prefix(p string) func(constant) bool {
	return func(c constant) bool { return strings.HasPrefix(c.name, p) }
}

// inBlock selects the constants of the block with this first sentence.
func inBlock(says string) func(constant) bool {
	return func(c constant) bool { return strings.HasPrefix(c.block, says) }
}

// qualified selects the names of labels and annotations.
func qualified(c constant) bool {
	named := strings.HasPrefix(c.name, "Label") || strings.HasPrefix(c.name, "Annotation")
	return named && strings.Contains(c.value, "/")
}

func (s section) table(root string) (string, error) {
	var rows [][2]string
	for _, folder := range s.folders {
		all, err := constants(filepath.Join(root, folder))
		if err != nil {
			return "", err
		}
		for _, c := range all {
			if !s.has(c) {
				continue
			}
			if c.doc == "" {
				return "", fmt.Errorf("%s has no comment", c.name)
			}
			rows = append(rows, [2]string{c.value, sentence(c, all)})
		}
	}
	if len(rows) == 0 {
		return "", errors.New("no constant is found")
	}
	return table(s.title, rows), nil
}

func table(title string, rows [][2]string) string {
	page := strings.Builder{}
	fmt.Fprintf(&page, "\n## %s\n\n| name | meaning |\n|---|---|\n", title)
	for _, r := range rows {
		fmt.Fprintf(&page, "| `%s` | %s |\n", r[0], r[1])
	}
	return page.String()
}

// reference is a link of a Go comment.
var reference = regexp.MustCompile(`\[([A-Za-z.]+)\]`)

// sentence is the comment with the names that users see in place of those of the package's constants.
func sentence(c constant, all []constant) string {
	words := reference.ReplaceAllString(strings.Join(strings.Fields(c.doc), " "), "$1")
	for _, other := range all {
		if other.name != other.value {
			words = regexp.MustCompile(`\b`+other.name+`\b`).ReplaceAllString(words, "`"+other.value+"`")
		}
	}
	return strings.ReplaceAll(words, "|", "\\|")
}

// constants returns the string constants of the package in the folder, in the order of its files.
func constants(folder string) ([]constant, error) {
	files, err := parse(folder)
	if err != nil {
		return nil, err
	}
	var all []constant
	for _, file := range files {
		for _, d := range file.Decls {
			if block, ok := d.(*ast.GenDecl); ok && block.Tok == token.CONST {
				all = append(all, of(block)...)
			}
		}
	}
	return all, nil
}

// of returns the constants of a block. One without a comment shares that of its predecessor, if it is named there.
func of(block *ast.GenDecl) []constant {
	var all []constant
	last := ""
	for _, s := range block.Specs {
		spec := s.(*ast.ValueSpec) //nolint:forcetypeassert // constants have no other
		value, ok := text(spec)
		if !ok {
			continue
		}
		c := constant{spec.Names[0].Name, value, block.Doc.Text(), spec.Doc.Text()}
		switch {
		case c.doc == "" && len(block.Specs) == 1, c.doc == "" && strings.Contains(c.block, c.name):
			c.doc = c.block
		case c.doc == "" && strings.Contains(last, c.name):
			c.doc = last
		}
		last = c.doc
		all = append(all, c)
	}
	return all
}

func text(spec *ast.ValueSpec) (string, bool) {
	if len(spec.Values) != 1 {
		return "", false
	}
	literal, ok := spec.Values[0].(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(literal.Value)
	return value, err == nil
}

func parse(folder string) ([]*ast.File, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	var all []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		all = append(all, file)
	}
	return all, nil
}
