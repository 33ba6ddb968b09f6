package e2e_test

import (
	"regexp"
	"strings"
	"testing"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// etcdctl runs in the first member's pod, with the arguments as a shell would split them.
func (c *cluster) etcdctl(t *testing.T, args string) {
	t.Helper()
	run := []string{"-n", c.key.Namespace, "exec", "etcd-0-0", "--", "etcdctl"}
	if c.get(t).Spec.TLS.Mode == etcdv1.TLSModeManaged {
		const keys = "/etc/etcd/server-tls/"
		run = append(run, "--cacert="+keys+"ca.crt", "--cert="+keys+"tls.crt", "--key="+keys+"tls.key")
	}
	if out, err := kubectl(append(run, strings.Fields(args)...)...); err != nil {
		t.Fatalf("etcdctl %s: %v\n%s", args, err, out)
	}
}

func (c *cluster) enableAuth(t *testing.T) {
	t.Helper()
	for _, args := range []string{"user add root:secret", "user grant-role root root", "auth enable"} {
		c.etcdctl(t, args)
	}
}

// TestEtcdAuthReportsRequiredGrant: after etcdctl auth enable the cluster is Ready, a change
// reports the commands that it needs, and continues after them.
func TestEtcdAuthReportsRequiredGrant(t *testing.T) {
	c := formed(t, 3, func(spec *etcdv1.EtcdClusterSpec) { spec.TLS.Mode = etcdv1.TLSModeManaged })
	c.enableAuth(t)
	if obj := c.settled(t); obj.Status.Ready != "3/3" {
		t.Errorf("%s serve", obj.Status.Ready)
	}
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size = 4 })
	said := condition(t, c.Settles(t, lifecycle.OutcomeBlocked, "AuthEnabled"), lifecycle.ConditionStalled).Message
	commands := regexp.MustCompile(`etcdctl ([a-z][^&"]*)`).FindAllStringSubmatch(said, -1)
	if len(commands) != 2 {
		t.Fatalf("the message is %q", said)
	}
	for _, found := range commands {
		c.etcdctl(t, "--user=root:secret "+found[1])
	}
	if obj := c.settled(t); obj.Status.Ready != "4/4" {
		t.Errorf("%s serve", obj.Status.Ready)
	}
}

// TestEtcdAuthWithoutCertificates: members that deny the operator the member list continue to
// serve, and the cluster is Ready as long as the kubelet's probes succeed.
func TestEtcdAuthWithoutCertificates(t *testing.T) {
	c := formed(t, 1)
	c.enableAuth(t)
	obj := c.Settles(t, lifecycle.OutcomeSettled, "AuthEnabled")
	if said := condition(t, obj, lifecycle.ConditionReady).Message; obj.Status.Ready != "1/1" || !contains(said, "etcdctl auth disable") {
		t.Errorf("%s serve, and the message is %q", obj.Status.Ready, said)
	}
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size = 2 })
	c.Settles(t, lifecycle.OutcomeBlocked, "AuthEnabled")
	c.etcdctl(t, "--user=root:secret auth disable")
	if obj := c.settled(t); obj.Status.Ready != "2/2" {
		t.Errorf("%s serve", obj.Status.Ready)
	}
}
