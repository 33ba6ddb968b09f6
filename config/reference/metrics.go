package main

import (
	"errors"
	"go/ast"
	"path/filepath"
	"slices"
	"strconv"
)

// metricTable lists the metrics by their options in the packages.
func metricTable(root string, folders ...string) (string, error) {
	var rows [][2]string
	for _, folder := range folders {
		files, err := parse(filepath.Join(root, folder))
		if err != nil {
			return "", err
		}
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				if options, ok := n.(*ast.CompositeLit); ok {
					if name, help := field(options, "Name"), field(options, "Help"); help != "" {
						rows = append(rows, [2]string{name, help})
					}
				}
				return true
			})
		}
	}
	if len(rows) == 0 {
		return "", errors.New("no metric is found")
	}
	slices.SortFunc(rows, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	return table("Metrics", rows), nil
}

// field returns the string of the literal's field; empty if it has none.
func field(options *ast.CompositeLit, name string) string {
	for _, e := range options.Elts {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		key, ok := pair.Key.(*ast.Ident)
		value, literal := pair.Value.(*ast.BasicLit)
		if !ok || !literal || key.Name != name {
			continue
		}
		if s, err := strconv.Unquote(value.Value); err == nil {
			return s
		}
	}
	return ""
}
