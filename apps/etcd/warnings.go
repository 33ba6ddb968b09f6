package etcd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
)

// Warnings is one of the [Abilities]: it warns about what a change of the spec costs, or can cost later.
func (Planner) Warnings(old, want *etcdv1.EtcdCluster) []string {
	var all []string
	for _, warning := range []func(old, want *etcdv1.EtcdCluster) string{revocationWarning, quotaWarning, unsafeWarning, flagWarning} {
		if said := warning(old, want); said != "" {
			all = append(all, said)
		}
	}
	return all
}

func revocationWarning(old, want *etcdv1.EtcdCluster) string {
	if old == nil || !revokes(want) || revokes(old) && old.Spec.TLS.RevokeBefore.Equal(want.Spec.TLS.RevokeBefore) {
		return ""
	}
	return fmt.Sprintf(
		"spec.tls.revokeBefore: at %s members with an older authority restart twice, one at a time, and then refuse its certificates: "+
			"clients must read the Secret %s again.", want.Spec.TLS.RevokeBefore.UTC().Format(time.RFC3339), ClientSecret(want))
}

// quotaWarning warns before the rule [quotaTooSmall] holds the change.
func quotaWarning(old, want *etcdv1.EtcdCluster) string {
	q := want.Spec.Options.Quota
	if old == nil || q == nil || old.Spec.Options.Quota != nil && old.Spec.Options.Quota.Cmp(*q) <= 0 {
		return ""
	}
	for _, m := range want.Status.Members {
		if m.DBSize != nil && m.DBSize.Value() > q.Value()-largestRequest {
			return fmt.Sprintf("spec.options.quota: %s is too small for the database of %s, which has %s. No member restarts with it.", q, m.Name, m.DBSize)
		}
	}
	return ""
}

// unsafeWarning warns about an option with which etcd acknowledges writes that are not on disk.
func unsafeWarning(old, want *etcdv1.EtcdCluster) string {
	where := unsafeOption(want)
	if where == "" || old != nil && unsafeOption(old) == where {
		return ""
	}
	return where + ": etcd does not wait for its disk. A power failure can lose acknowledged writes, and the cluster."
}

// unsafeOption is the field that turns off fsync; empty if none does.
func unsafeOption(c *etcdv1.EtcdCluster) string {
	for _, arg := range c.Spec.Pod.Args {
		if name, value, _ := strings.Cut(arg, "="); strings.TrimLeft(name, "-") == "unsafe-no-fsync" && value != "false" {
			return "spec.pod.args " + arg
		}
	}
	for _, e := range c.Spec.Pod.Env {
		if e.Name == "ETCD_UNSAFE_NO_FSYNC" && e.Value != "false" {
			return "spec.pod.env " + e.Name
		}
	}
	return ""
}

// flagWarning warns about flags that the wanted version has no more: etcd 3.7 removed the flags --experimental-*
// (https://github.com/etcd-io/etcd/blob/main/CHANGELOG/CHANGELOG-3.7.md). A trial pod finds them too, later.
func flagWarning(old, want *etcdv1.EtcdCluster) string {
	at := slices.IndexFunc(want.Spec.Pod.Args, isExperimental)
	if at < 0 || !withoutExperimental(want) || old != nil && withoutExperimental(old) && slices.ContainsFunc(old.Spec.Pod.Args, isExperimental) {
		return ""
	}
	return fmt.Sprintf("spec.pod.args %s: etcd %s has no experimental flags, and does not start with one. Use the flag without the prefix.",
		want.Spec.Pod.Args[at], want.Spec.Version)
}

func isExperimental(arg string) bool {
	return strings.HasPrefix(strings.TrimLeft(arg, "-"), "experimental-")
}

func withoutExperimental(c *etcdv1.EtcdCluster) bool {
	to, err := parse(c.Spec.Version)
	return err == nil && to.minor >= 7
}
