package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
)

// fakeEtcd builds the image with fakeetcd once, and makes the cluster use it.
func fakeEtcd(t *testing.T) func(*etcdv1.EtcdClusterSpec) {
	t.Helper()
	if err := fakeEtcdImage(); err != nil {
		t.Fatal(err)
	}
	return func(spec *etcdv1.EtcdClusterSpec) { spec.Repository = "governor.test/fakeetcd/etcd" }
}

var fakeEtcdImage = sync.OnceValue(func() error {
	build := exec.Command("go", "build", "-o", "../../build/fakeetcd", "./fakeetcd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	_, err := command(localkube[0], append(localkube[1:], "image", "build", "fakeetcd/image.yaml", "--load")...)
	return err
})

// orders tells the member's fakeetcd which health to report.
func (c *cluster) orders(t *testing.T, member, lie string) {
	t.Helper()
	answer, err := http.Post("http://"+c.pod(t, member).Status.PodIP+":2399/"+lie, "", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", lie, answer.Status)
	}
}

// wake triggers a reconcile: while all pods are ready, the next one is up to a minute away.
func (c *cluster) wake(t *testing.T) {
	t.Helper()
	must(t, "-n", c.key.Namespace, "annotate", "--overwrite", "etcdcluster/"+c.key.Name, "example.com/woken="+time.Now().Format("150405.000"))
}

// TestEtcdWrongHealthReports: a frozen member that is reported as healthy does not count, and a
// serving one that is reported as unhealthy is not replaced. Meanwhile Governor begins no change
// that could break the quorum. With correct reports the members are the same as before.
func TestEtcdWrongHealthReports(t *testing.T) {
	c := formed(t, 3, fakeEtcd(t))
	before, w := c.get(t), c.write(t)
	for _, lie := range []string{"fine", "ill"} {
		t.Run(lie, func(t *testing.T) {
			liar := c.get(t).Status.Leader
			c.orders(t, liar, lie)
			c.wake(t)
			eventually(t, "the operator does not count on "+liar, func(ctx context.Context) error {
				return c.has(ctx, func(obj *etcdv1.EtcdCluster) bool {
					return obj.Status.Ready == "2/3" && obj.Status.Phase == etcdv1.PhaseDegraded
				})
			})
			c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size = 4 })
			c.Rests(t)
			if now := c.get(t); len(now.Status.Members) != 3 {
				t.Errorf("while %s lied the members became %+v", liar, now.Status.Members)
			}
			c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size = 3 })
			c.orders(t, liar, "honest")
			same(t, before, c.settled(t))
		})
	}
	kept(t, w)
}

// TestEtcdClocksDiffer: of three members one is ten minutes ahead and one ten behind, with newly
// issued certificates. They form a cluster, recover and grow, and none is reported as unhealthy.
func TestEtcdClocksDiffer(t *testing.T) {
	clocks := corev1.EnvVar{Name: "IMPOSTOR_CLOCKS", Value: "etcd-0=10m,etcd-1=-10m,etcd-3=10m,etcd-4=-10m"}
	c := formed(t, 3, fakeEtcd(t), func(spec *etcdv1.EtcdClusterSpec) {
		spec.TLS.Mode, spec.Pod.Env = etcdv1.TLSModeManaged, []corev1.EnvVar{clocks}
	})
	for member, want := range map[string]time.Duration{"etcd-0": 10 * time.Minute, "etcd-1": -10 * time.Minute, "etcd-2": 0} {
		if got := c.ahead(t, member); (got - want).Abs() > 2*time.Minute {
			t.Fatalf("the clock of %s is %s ahead, want %s", member, got, want)
		}
	}
	before := c.get(t)
	w := c.write(t, c.withKeys(t, before.Status.ClientSecretName))
	gone := before.Status.Leader
	c.LoseVolumes(t, gone)
	replaced(t, before, c.settled(t), gone)
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size = 4 })
	for _, m := range c.settled(t).Status.Members {
		if m.Health != "Healthy" || m.Problem != "" {
			t.Errorf("%+v", m)
		}
	}
	kept(t, w)
}

// ahead is the offset of the member's clock from this machine's, from the first line of its
// etcd's log and the time at which the kubelet received it.
func (c *cluster) ahead(t *testing.T, member string) time.Duration {
	t.Helper()
	logs := must(t, "-n", c.key.Namespace, "logs", member+"-0", "--timestamps", "--limit-bytes=20000")
	for line := range bytes.Lines([]byte(logs)) {
		stamp, said, _ := bytes.Cut(line, []byte(" "))
		var entry struct{ TS time.Time }
		got, err := time.Parse(time.RFC3339Nano, string(stamp))
		if err == nil && json.Unmarshal(said, &entry) == nil && !entry.TS.IsZero() {
			return entry.TS.Sub(got)
		}
	}
	t.Fatalf("%s has logged nothing", member)
	return 0
}
