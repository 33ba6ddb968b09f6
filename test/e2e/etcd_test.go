package e2e_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/apps/etcd/contract"
	"github.com/governor-dev/governor/apps/etcd/driver"
	"github.com/governor-dev/governor/kube"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/test/consistencyclient"
)

// TestEtcdContract runs the contract of the simulator's model on real etcd.
func TestEtcdContract(t *testing.T) {
	contract.Run(t, func(t *testing.T) contract.System { return newCluster(t) })
}

// cluster is a real etcd cluster in its own namespace. It implements
// contract.System.
type cluster struct {
	key    client.ObjectKey
	driver lifecycle.Driver[*etcdv1.EtcdCluster, etcd.World]
}

// newCluster runs the test in parallel. Its cluster does not use TLS unless the test edits that.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	t.Parallel()
	return lonelyCluster(t)
}

// lonelyCluster is for a test that disturbs shared components, and so runs alone.
func lonelyCluster(t *testing.T) *cluster {
	t.Helper()
	return &cluster{client.ObjectKey{Namespace: newNamespace(t), Name: "etcd"}, driver.New(kube.Access{Client: api, Live: api, Now: time.Now})}
}

// formed creates a cluster with the edits and waits for it.
func formed(t *testing.T, size int32, edits ...func(*etcdv1.EtcdClusterSpec)) *cluster {
	t.Helper()
	c := newCluster(t)
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) {
		spec.Size = size
		for _, edit := range edits {
			edit(spec)
		}
	})
	c.settled(t)
	return c
}

// Apply implements contract.System.
func (c *cluster) Apply(t *testing.T, edit func(*etcdv1.EtcdClusterSpec)) {
	t.Helper()
	if err := c.apply(t.Context(), edit); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) apply(ctx context.Context, edit func(*etcdv1.EtcdClusterSpec)) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		obj := &etcdv1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: c.key.Namespace, Name: c.key.Name}}
		err := api.Get(ctx, c.key, obj)
		if apierrors.IsNotFound(err) {
			obj.Spec.TLS.Mode = etcdv1.TLSModeDisabled
			edit(&obj.Spec)
			return api.Create(ctx, obj)
		}
		if err != nil {
			return err
		}
		edit(&obj.Spec)
		return api.Update(ctx, obj)
	})
}

func (c *cluster) settled(t *testing.T) *etcdv1.EtcdCluster {
	t.Helper()
	return c.Settles(t, lifecycle.OutcomeSettled, "AsDeclared")
}

// Settles implements contract.System. It also evaluates the rules for a fresh observation: the
// status may be older than the test's last fault.
func (c *cluster) Settles(t *testing.T, outcome lifecycle.Outcome, reason string) *etcdv1.EtcdCluster {
	t.Helper()
	var obj *etcdv1.EtcdCluster
	eventually(t, fmt.Sprintf("%s tells %s %s", c.key, outcome, reason), func(ctx context.Context) (err error) {
		if obj, err = c.read(ctx); err != nil {
			return err
		}
		if err := tells(obj, outcome, reason); err != nil {
			return err
		}
		seen, err := c.driver.Observe(ctx, obj)
		if err != nil {
			return err
		}
		if d := (etcd.Planner{}).Next(obj, seen, time.Now()); d.Outcome != outcome || d.Reason != reason {
			return fmt.Errorf("%w: by what is seen now it is %s", errNotYet, d)
		}
		return nil
	})
	return obj
}

func (c *cluster) read(ctx context.Context) (*etcdv1.EtcdCluster, error) {
	obj := &etcdv1.EtcdCluster{}
	return obj, api.Get(ctx, c.key, obj)
}

func (c *cluster) get(t *testing.T) *etcdv1.EtcdCluster {
	t.Helper()
	obj, err := c.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

// Rests implements contract.System: longer than the operator's heartbeat.
func (c *cluster) Rests(t *testing.T) {
	t.Helper()
	select {
	case <-time.After(12 * time.Second):
	case <-t.Context().Done():
	}
}

// Await implements contract.System.
func (c *cluster) Await(t *testing.T, what string, holds func() error) {
	t.Helper()
	eventually(t, what, func(context.Context) error { return holds() })
}

// Observe implements contract.System.
func (c *cluster) Observe(t *testing.T) etcd.World {
	t.Helper()
	seen, err := c.driver.Observe(t.Context(), c.get(t))
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// Act implements contract.System.
func (c *cluster) Act(t *testing.T, s lifecycle.Step) error {
	t.Helper()
	return c.driver.Act(t.Context(), c.get(t), c.Observe(t), s)
}

// LosePods implements contract.System.
func (c *cluster) LosePods(t *testing.T, members ...string) {
	t.Helper()
	for _, m := range members {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.key.Namespace, Name: m + "-0"}}
		if err := api.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
}

// LoseVolumes implements contract.System.
func (c *cluster) LoseVolumes(t *testing.T, members ...string) {
	t.Helper()
	for _, m := range members {
		claim := &corev1.PersistentVolumeClaim{}
		claim.Namespace, claim.Name = c.key.Namespace, etcd.ClaimName(c.get(t), m)
		if err := api.Delete(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
	}
	c.LosePods(t, members...)
}

// LoseSet implements contract.System.
func (c *cluster) LoseSet(t *testing.T, member string) {
	t.Helper()
	uid := c.pod(t, member).UID
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: c.key.Namespace, Name: member}}
	if err := api.Delete(t.Context(), set, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod of "+member+" is gone", func(ctx context.Context) error {
		pod := &corev1.Pod{}
		err := api.Get(ctx, client.ObjectKey{Namespace: c.key.Namespace, Name: member + "-0"}, pod)
		if err == nil && pod.UID == uid {
			return errNotYet
		}
		return client.IgnoreNotFound(err)
	})
}

// connect returns a connection to the member, until the test ends.
func (c *cluster) connect(t *testing.T, member string) *grpc.ClientConn {
	t.Helper()
	address := net.JoinHostPort(c.pod(t, member).Status.PodIP, "2379")
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// RaiseCorrupt implements contract.System. etcdctl cannot raise an alarm.
func (c *cluster) RaiseCorrupt(t *testing.T, member string) {
	t.Helper()
	maintenance := pb.NewMaintenanceClient(c.connect(t, member))
	at, err := maintenance.Status(t.Context(), &pb.StatusRequest{})
	if err == nil {
		_, err = maintenance.Alarm(t.Context(), &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: at.Header.MemberId, Alarm: pb.AlarmType_CORRUPT})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// RemoveByHand implements contract.System.
func (c *cluster) RemoveByHand(t *testing.T, member string) {
	t.Helper()
	c.Await(t, "etcdctl removes "+member, func() error { return c.Act(t, contract.On(c.Observe(t), etcd.RemoveMember, member)) })
}

// AddByHand implements contract.System.
func (c *cluster) AddByHand(t *testing.T, role etcd.Role) {
	t.Helper()
	verb := map[etcd.Role]string{etcd.Learner: etcd.AddLearner, etcd.Voter: etcd.AddVoter}[role]
	c.Await(t, fmt.Sprintf("etcdctl adds a %s", role), func() error { return c.Act(t, contract.Add(verb, "stray")) })
}

// write lets a consistency client write through the client Service until the test ends. No
// acknowledged write may then be lost.
func (c *cluster) write(t *testing.T, edits ...func(*consistencyclient.Options)) *consistencyclient.Client {
	t.Helper()
	o := c.clients()
	for _, edit := range edits {
		edit(&o)
	}
	w := consistencyclient.Start(t.Context(), o)
	t.Cleanup(w.Stop)
	return w
}

// clients are those of the client Service.
func (c *cluster) clients() consistencyclient.Options {
	return consistencyclient.Options{Find: consistencyclient.Service(api, client.ObjectKey{Namespace: c.key.Namespace, Name: c.key.Name + "-client"})}
}

// kept ends the writing and checks that etcd has all acknowledged writes.
func kept(t *testing.T, w *consistencyclient.Client) {
	t.Helper()
	w.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	lost, err := w.Lost(ctx)
	tally := w.Stats()
	t.Log(tally)
	if len(lost) > 0 {
		t.Errorf("DATA LOSS: %.300q of %d", lost, tally.Acknowledged) // tools/ci/run counts no second try then
	}
	if err != nil || tally.Acknowledged < 20 || len(tally.Clusters) != 1 {
		t.Errorf("%d writes, %v; clusters %x", tally.Acknowledged, err, tally.Clusters)
	}
}

// process is the PID of the member's etcd on this machine.
func (c *cluster) process(t *testing.T, member string) int {
	t.Helper()
	own := "--initial-advertise-peer-urls=" + etcd.PeerURL(c.get(t), member)
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(line), "\x00"+own+"\x00") {
			id, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
	}
	t.Fatalf("no etcd of %s runs on this machine", member)
	return 0
}

func (c *cluster) signal(t *testing.T, member string, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(c.process(t, member), s); err != nil {
		t.Fatal(err)
	}
}
