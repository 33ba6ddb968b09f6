package etcd

import (
	"fmt"
	"slices"
	"time"

	"github.com/governor-dev/governor/lifecycle"
)

// replaceAfter is how long a member may be silent before Governor replaces it.
func (g desired) replaceAfter() time.Duration {
	if d := g.Spec.ReplaceAfter; d != nil {
		return d.Duration
	}
	return replaceAfter
}

// nodeInMaintenance waits for a member whose node is cordoned or named in a policy: it is
// expected to return, and a replacement would copy all data.
func nodeInMaintenance(m Member) lifecycle.Decision {
	if m.Maintenance == "" {
		return lifecycle.Decision{}
	}
	if m.MaintenanceBy != "" {
		return await(Serving, m, later(m.Since, m.Pod.Since), "NodeInMaintenance",
			"%s does not serve, and %s says that the node %s is in maintenance; Governor waits for it. To have it replaced, remove the node from spec.nodeMaintenance.",
			m.Name, m.MaintenanceBy, m.Maintenance)
	}
	return await(Serving, m, later(m.Since, m.Pod.Since), "NodeInMaintenance",
		"%s does not serve, and the node %s is cordoned; Governor waits for it. To have it replaced, uncordon the node or delete the Node object.",
		m.Name, m.Maintenance)
}

// concentration returns the failure domain whose loss alone breaks the quorum: a zone or a node.
// It is empty if there is none, or if the domain of a voter is unknown.
func (w World) concentration() string {
	voters := w.count(voter)
	if !w.Listed || voters < 3 {
		return ""
	}
	domains := []struct {
		kind string
		of   func(Member) string
	}{{"node", func(m Member) string { return m.Pod.Node }}, {"zone", func(m Member) string { return m.Pod.Zone }}}
	for _, d := range domains {
		if name, n := most(w.Members, d.of); voters-n < w.quorum() {
			return fmt.Sprintf("the %s %s", d.kind, name)
		}
	}
	return ""
}

// most returns the value that most voters share, and their number. It returns none if a voter
// has no value.
func most(members []Member, of func(Member) string) (value string, n int) {
	shared := map[string]int{}
	for _, m := range members {
		if voter(m) {
			shared[of(m)]++
		}
	}
	if shared[""] > 0 {
		return "", 0
	}
	var names []string
	for name := range shared {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if shared[name] > n {
			value, n = name, shared[name]
		}
	}
	return value, n
}
