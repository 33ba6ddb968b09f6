package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
)

// roll are the flags of the command.
type roll struct {
	*session
	output
}

// facts are the fields of one member by name.
type facts = map[string]any

func membersCommand(s *session) *cobra.Command {
	r := &roll{session: s}
	cmd := &cobra.Command{
		Use:   "members TYPE/NAME",
		Short: "List the members of an object with their health",
		Long: `List the members of the object's status, with the fields that the application reports, such
as the leader. For a kind whose status has no members, list its pods. -o wide shows every
field, -o name only names.`,
		Example: `  kubectl governor members etcdcluster/my-cluster

  # the leader
  kubectl governor members etcdcluster my-cluster -o json | jq -r '.[] | select(.role == "Leader").name'

  # nodes and restarts of all servers
  kubectl governor members memcached/my-cache -o wide`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: s.complete,
		RunE:              func(cmd *cobra.Command, args []string) error { return r.run(cmd.Context(), args) },
	}
	r.add(cmd, formatWide, formatName)
	return cmd
}

func (r *roll) run(ctx context.Context, args []string) error {
	t, err := r.subject(args)
	if err != nil {
		return err
	}
	all := records(t.Unstructured)
	if all == nil {
		if all, err = t.podRecords(ctx); err != nil {
			return err
		}
	}
	return r.write(r.session, all, func() { r.print(t, all) })
}

// records returns the members of the object's status; nil if it has none.
func records(obj *unstructured.Unstructured) []facts {
	list, _, err := unstructured.NestedSlice(obj.Object, "status", "members")
	if err != nil {
		return nil
	}
	var all []facts
	for _, item := range list {
		switch m := item.(type) {
		case string:
			all = append(all, facts{"name": m})
		case facts:
			if name, _ := m["name"].(string); name != "" {
				all = append(all, m)
			}
		}
	}
	return all
}

// podRecords returns the object's pods.
func (t *target) podRecords(ctx context.Context) ([]facts, error) {
	found, faults := fetch(ctx, t.all, t.belongings())
	if faults[0] != nil {
		return nil, faults[0]
	}
	all := []facts{}
	for _, m := range grow(t.Unstructured, found).Members {
		for _, p := range m.Pods {
			all = append(all, facts{
				"name": p.Name, "health": p.Health, "version": p.Version, "node": p.Node, "restarts": p.Restarts, "workload": m.Name,
			})
		}
	}
	return all, nil
}

func (r *roll) print(t *target, all []facts) {
	switch {
	case r.format == formatName:
		for _, m := range all {
			r.say("%s", m["name"])
		}
	case len(all) == 0:
		r.say("%s has no members.", t)
	default:
		r.sayAll(r.table(r.rows(all)))
	}
}

// usual are the first columns; -o wide adds others.
var usual = []string{"name", "role", "health", "version", "since", "node", "problem"}

func (r *roll) rows(all []facts) [][]cell {
	columns := columns(all, r.wide())
	header := make([]cell, len(columns))
	for i, key := range columns {
		header[i].text = title(key)
	}
	rows := [][]cell{header}
	for _, m := range all {
		row := make([]cell, len(columns))
		for i, key := range columns {
			row[i].text = cmp.Or(r.value(m[key]), "-")
			if key == "health" {
				row[i].tone = healthy(row[i].text)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// columns returns the fields that any member has: the usual ones in their order, then the
// others by name.
func columns(all []facts, every bool) []string {
	known := map[string]bool{}
	for _, m := range all {
		for key, value := range m {
			known[key] = known[key] || fmt.Sprint(value) != ""
		}
	}
	var first []string
	for _, key := range usual {
		if known[key] {
			first = append(first, key)
		}
		delete(known, key)
	}
	maps.DeleteFunc(known, func(_ string, isSet bool) bool { return !isSet || !every })
	return append(first, slices.Sorted(maps.Keys(known))...)
}

// title returns the column header of a field: dbSize is DB-SIZE, nodeName NODE-NAME.
func title(field string) string {
	var b strings.Builder
	runes := []rune(field)
	for i, c := range runes {
		if i > 1 && unicode.IsUpper(c) && unicode.IsLower(runes[i-1]) || i == 2 && unicode.IsUpper(c) && len(runes) > 3 {
			b.WriteRune('-')
		}
		b.WriteRune(unicode.ToUpper(c))
	}
	return b.String()
}

// value formats a field; a time becomes an age.
func (r *roll) value(v any) string {
	text, ok := v.(string)
	switch {
	case v == nil:
		return ""
	case !ok:
		return fmt.Sprint(v)
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return duration.HumanDuration(r.now().Sub(at)) + " ago"
	}
	return text
}
