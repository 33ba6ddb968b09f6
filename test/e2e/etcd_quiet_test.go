package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"k8s.io/apimachinery/pkg/api/resource"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/test/consistencyclient"
)

const (
	// full is the number of log entries after which a joining member needs a snapshot, when etcd
	// writes one every 100: it keeps the last 5,000.
	full = 5300
	// hands that write at once.
	hands = 32
)

// Fill implements contract.System.
func (c *cluster) Fill(t *testing.T) {
	t.Helper()
	leader := pb.NewKVClient(c.connect(t, c.get(t).Status.Leader))
	var all sync.WaitGroup
	errs := make([]error, hands)
	for hand := range hands {
		all.Go(func() {
			for n := hand; n < full && errs[hand] == nil; n += hands {
				_, errs[hand] = leader.Put(t.Context(), &pb.PutRequest{Key: fmt.Appendf(nil, "fill/%d", n)})
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestEtcdAlarmsAreReportedAndDisarmed: a database that reaches its quota is reported soon, of every
// member that has the alarm, and the alarm ends when the quota is raised.
func TestEtcdAlarmsAreReportedAndDisarmed(t *testing.T) {
	quota, more := resource.MustParse("16Mi"), resource.MustParse("64Mi")
	c := formed(t, 3, func(spec *etcdv1.EtcdClusterSpec) { spec.Options.Quota = &quota })
	c.overflows(t)
	within(t, alarmReported, "the alarm is reported", func(ctx context.Context) error {
		obj, err := c.read(ctx)
		if err != nil {
			return err
		}
		return tells(obj, lifecycle.OutcomeBlocked, "AlarmRaised")
	})
	said := condition(t, c.Settles(t, lifecycle.OutcomeBlocked, "AlarmRaised"), "Alarm").Message
	for _, m := range c.Observe(t).Members {
		if len(m.Alarms) > 0 && !contains(said, m.Name+" has raised NOSPACE") {
			t.Errorf("%q does not name %s", said, m.Name)
		}
	}
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Options.Quota = &more })
	c.settled(t)
	kept(t, c.writesAgain(t))
}

// overflows writes until etcd refuses.
func (c *cluster) overflows(t *testing.T) {
	t.Helper()
	leader := pb.NewKVClient(c.connect(t, c.get(t).Status.Leader))
	var err error
	for n := 0; err == nil && n < 64; n++ {
		_, err = leader.Put(t.Context(), &pb.PutRequest{Key: fmt.Appendf(nil, "much/%d", n), Value: make([]byte, 1<<20)})
	}
	if !errors.Is(rpctypes.Error(err), rpctypes.ErrNoSpace) {
		t.Fatalf("etcd returns %v", err)
	}
}

func (c *cluster) writesAgain(t *testing.T) *consistencyclient.Client {
	t.Helper()
	w := c.write(t)
	eventually(t, "clients can write again", func(context.Context) error { return atLeast(w.Stats().Acknowledged, 20) })
	return w
}
