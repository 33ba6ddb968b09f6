package e2e_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
)

// listener is a user who sees the warnings of its own requests.
type listener struct {
	client.Client
	said []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (l *listener) HandleWarningHeader(_ int, _, text string) { l.said = append(l.said, text) }

func newListener() (*listener, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	l := &listener{}
	config.QPS, config.WarningHandler = -1, l
	l.Client, err = client.New(config, client.Options{Scheme: api.Scheme()})
	return l, err
}

// ask upgrades the cluster, which is irreversible, or deletes it; without effect.
func (l *listener) ask(t *testing.T, c *cluster, deletes bool) error {
	l.said = nil
	obj := &etcdv1.EtcdCluster{}
	if err := l.Get(t.Context(), c.key, obj); err != nil {
		return err
	}
	if deletes {
		return l.Delete(t.Context(), obj, client.DryRunAll)
	}
	obj.Spec.Version = "3.6"
	return l.Update(t.Context(), obj, client.DryRunAll)
}

// heard reports whether a warning says what happens, or that it is not known.
func (l *listener) heard(deletes bool) error {
	said := strings.Join(l.said, "\n")
	about := map[bool]string{false: "irreversible", true: "are deleted"}[deletes]
	if strings.Contains(said, about) || strings.Contains(said, "could not compute") {
		return nil
	}
	return fmt.Errorf("the warnings of a dry run (of a deletion: %t) are %q", deletes, said)
}

// Each of 200 dry runs of an irreversible change and of a deletion has a warning, also while eight users ask at
// once and all replicas of the operator restart.
func TestEveryDryRunHasAWarning(t *testing.T) {
	c := lonelyCluster(t)
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size, spec.Version = 3, "3.5" })
	c.settled(t)
	const users, questions = 8, 25
	var asking sync.WaitGroup
	for range users {
		l, err := newListener()
		if err != nil {
			t.Fatal(err)
		}
		asking.Go(func() {
			for n := range questions {
				deletes := n%2 == 1
				err := l.ask(t, c, deletes)
				if err == nil {
					err = l.heard(deletes)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	must(t, "-n", "governor-system", "rollout", "restart", "deployment/governor")
	asking.Wait()
	must(t, "-n", "governor-system", "rollout", "status", "deployment/governor", "--timeout=60s")
}
