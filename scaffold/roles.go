package scaffold

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// roles adds what the kinds need to the first role of the manifest, and writes it as the generator does: rules that
// differ in the resource only are one, and all are sorted.
func (p Project) roles(manifest string, kinds []Kind) (string, error) {
	first, others, _ := strings.Cut(strings.TrimPrefix(manifest, "---\n"), "---\n")
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict([]byte(first), &role); err != nil {
		return "", fmt.Errorf("config/rbac/role.yaml: %w", err)
	}
	for _, k := range kinds {
		var needed []rbacv1.PolicyRule
		if err := yaml.UnmarshalStrict([]byte(p.fillKind(read("rule.yaml.tmpl"), k)), &needed); err != nil {
			panic(err) // it is in this binary
		}
		for _, r := range needed {
			role.Rules = allow(role.Rules, r)
		}
	}
	slices.SortFunc(role.Rules, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(slices.Compare(a.APIGroups, b.APIGroups), slices.Compare(a.Resources, b.Resources), slices.Compare(a.Verbs, b.Verbs))
	})
	raw, err := yaml.Marshal(role)
	if others != "" {
		others = "---\n" + others
	}
	return "---\n" + string(raw) + others, err
}

// allow adds a rule about one kind of resource: to one with the same verbs, if there is one.
func allow(rules []rbacv1.PolicyRule, r rbacv1.PolicyRule) []rbacv1.PolicyRule {
	for i, is := range rules {
		if !slices.Equal(is.APIGroups, r.APIGroups) || !slices.Equal(is.Verbs, r.Verbs) || len(is.ResourceNames) > 0 {
			continue
		}
		together := append(slices.Clone(is.Resources), r.Resources...)
		slices.Sort(together)
		rules[i].Resources = slices.Compact(together)
		return rules
	}
	return append(rules, r)
}
