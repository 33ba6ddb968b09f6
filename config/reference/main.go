// Command reference writes docs/reference/names.md from the comments of the constants that have the names.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	root := flag.String("root", "..", "the folder of the repository")
	out := flag.String("out", "../docs/reference/names.md", "the file to write")
	flag.Parse()
	page, err := names(*root)
	if err == nil {
		err = os.WriteFile(*out, []byte(page), 0o644) //nolint:gosec // documentation
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

const head = `# Names

<!-- Generated from the code by go generate ./config. -->

What objects of Governor have beside their own fields: conditions, labels, annotations, and the steps that a preview, the
history and an OperationPolicy name.
`

// sections are the tables of the page, in their order.
var sections = []section{
	{title: "Conditions", folders: []string{"lifecycle"}, has: prefix("Condition")},
	{title: "Conditions of policies and approvals", folders: []string{"lifecycle/policy"}, has: prefix("Condition")},
	{title: "Reasons of an approval's conditions", folders: []string{"lifecycle/policy"}, has: prefix("Reason")},
	{title: "Reasons of held steps", folders: []string{"lifecycle"}, has: prefix("ReasonHeld")},
	{title: "Steps of EtcdCluster", folders: []string{"apps/etcd"}, has: inBlock("Steps.")},
	{title: "Waits of EtcdCluster", folders: []string{"apps/etcd"}, has: inBlock("Waits.")},
	{title: "Labels and annotations", folders: []string{"lifecycle", "kube/revision", "apps/etcd", "apps/memcached", "apps/podset"}, has: qualified},
}

func names(root string) (string, error) {
	page := strings.Builder{}
	page.WriteString(head)
	for _, s := range sections {
		table, err := s.table(root)
		if err != nil {
			return "", fmt.Errorf("%s: %w", s.title, err)
		}
		page.WriteString(table)
	}
	metrics, err := metricTable(root, "engine/internal/metrics", "engine/internal/budget")
	page.WriteString(metrics)
	return page.String(), err
}
