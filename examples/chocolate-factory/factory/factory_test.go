package factory_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	"github.com/governor-dev/governor/operator/testcluster"

	v1 "awesome.corp.com/chocolate-factory/api/v1"
	"awesome.corp.com/chocolate-factory/factory"
	"awesome.corp.com/chocolate-factory/machine"
	"awesome.corp.com/chocolate-factory/machine/server"
)

func TestMain(m *testing.M) {
	os.Exit(testcluster.Main(m, testcluster.Options{
		CRDs: []string{"../config/crd"}, APIs: []func(*runtime.Scheme) error{v1.AddToScheme},
	}))
}

// hall is a namespace with machines and a running operator.
type hall struct {
	*testcluster.Cluster
	*testcluster.Running
	t         *testing.T
	namespace string
	mu        sync.Mutex
	machines  map[string]*httptest.Server
}

func open(t *testing.T) *hall {
	t.Parallel()
	c := testcluster.Get(t)
	h := &hall{Cluster: c, t: t, namespace: c.Namespace(t), machines: map[string]*httptest.Server{}}
	h.Running = c.Run(t, factory.Operator("test", h.address), h.namespace)
	return h
}

// address is where the machine of a candy is; every name has one.
func (h *hall) address(c *v1.Candy) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := cmp.Or(c.Spec.Machine, "none")
	if h.machines[name] == nil {
		m := machine.New(rand.New(rand.NewPCG(1, 2)))
		h.machines[name] = httptest.NewServer(server.New(m, time.Now))
		h.t.Cleanup(h.machines[name].Close)
	}
	return h.machines[name].URL
}

// fault makes a machine go wrong, by its own API.
func (h *hall) fault(name string, f machine.Faults) {
	h.t.Helper()
	raw, err := json.Marshal(f)
	must(h.t, err)
	h.ask(name, http.MethodPut, "/faults", string(raw))
}

func (h *hall) ask(name, method, path, body string) {
	h.t.Helper()
	address := h.address(&v1.Candy{Spec: v1.CandySpec{Machine: name}})
	request, err := http.NewRequestWithContext(h.t.Context(), method, address+path, strings.NewReader(body))
	must(h.t, err)
	response, err := http.DefaultClient.Do(request)
	must(h.t, err)
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		h.t.Fatalf("%s %s: %s", method, path, response.Status)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (h *hall) candy(name, manifest string) {
	h.t.Helper()
	c := &v1.Candy{}
	must(h.t, yaml.UnmarshalStrict([]byte(manifest), c))
	c.Namespace, c.Name = h.namespace, name
	must(h.t, h.Client.Create(h.t.Context(), c))
}

// until waits until the Ready condition of the candy says the reason, and returns it.
func (h *hall) until(name, reason string) *v1.Candy {
	h.t.Helper()
	c := &v1.Candy{}
	testcluster.Eventually(h.t, name+" says "+reason, func() error {
		if err := h.Client.Get(h.t.Context(), client.ObjectKey{Namespace: h.namespace, Name: name}, c); err != nil {
			return err
		}
		for _, is := range c.Status.Conditions {
			if is.Type == "Ready" && is.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("it says %+v", c.Status.Conditions)
	})
	return c
}

// manifest is the one that users have.
const manifest = `
apiVersion: awesome.corp.com/v1
kind: Candy
metadata:
  name: chocolate
spec:
  flavor: sweeeeeeet
`

func TestTheClassicManifest(t *testing.T) {
	h := open(t)
	h.candy("chocolate", manifest)
	s := h.until("chocolate", "Delivered").Status
	if s.Machine != "chocolate-machine" || s.Wanted != 640 || s.Sweetness == nil || s.Sweetness.Value < 630 || s.Sweetness.Value > 650 {
		t.Errorf("status is %+v, sweetness %+v", s, s.Sweetness)
	}
	h.Rests(t)
}

func TestSeveralShareOneMachine(t *testing.T) {
	h := open(t)
	for i := range 4 {
		h.candy(fmt.Sprintf("c%d", i), strings.Replace(manifest, "sweeeeeeet", []string{"dark", "milk"}[i%2], 1))
	}
	for i := range 4 {
		s := h.until(fmt.Sprintf("c%d", i), "Delivered").Status
		if off := s.Sweetness.Value - []int{300, 500}[i%2]; max(off, -off) > v1.Tolerance || s.Bars.Made != 1 {
			t.Errorf("c%d was made on the setting of another: %+v", i, s.Sweetness)
		}
	}
}

func TestWhichMachineMakesTooManyBadBars(t *testing.T) {
	h := open(t)
	h.fault("worn", machine.Faults{WrongBatch: 70})
	h.candy("good", manifest)
	h.candy("bad", manifest+"  machine: worn\n  attempts: 2\n")
	if s := h.until("bad", "TooManyBadBars").Status; s.Bars.Disposed != 2 || !s.Disposed || s.Sweetness.Value < 690 {
		t.Errorf("status is %+v", s)
	}
	h.until("good", "Delivered")
	counted := bars(t, h.namespace)
	if counted["worn Dispose"] != 2 || counted["chocolate-machine Deliver"] != 1 || len(counted) != 2 {
		t.Errorf("the metric has %v", counted)
	}
}

// bars reads the metric: how many bars by machine and result.
func bars(t *testing.T, namespace string) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	must(t, err)
	counted := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "chocolate_bars_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["namespace"] == namespace {
				counted[labels["machine"]+" "+labels["result"]] += m.GetCounter().GetValue()
			}
		}
	}
	return counted
}

func TestASilentMachineIsUnknown(t *testing.T) {
	h := open(t)
	h.fault("chocolate-machine", machine.Faults{Down: true})
	h.candy("chocolate", manifest)
	c := h.until("chocolate", "MachineAway")
	must(t, testcluster.Condition(c.Status.Conditions, "MachineAnswers", metav1.ConditionUnknown, "Silent"))
	h.Rests(t) // it asks the machine and writes nothing
	h.fault("chocolate-machine", machine.Faults{})
	h.until("chocolate", "Delivered")
}

func TestDeletionReleasesTheMachine(t *testing.T) {
	h := open(t)
	h.fault("chocolate-machine", machine.Faults{Slow: 600_000})
	h.candy("first", manifest)
	h.until("first", "BarSoft")
	h.candy("second", manifest)
	h.until("second", "MachineBusy")
	h.fault("chocolate-machine", machine.Faults{})
	h.remove("first")
	h.until("second", "Delivered")
}

func TestDeletionDoesNotHangOnADeadMachine(t *testing.T) {
	h := open(t)
	h.candy("chocolate", manifest)
	h.until("chocolate", "BarSoft")
	h.fault("chocolate-machine", machine.Faults{Down: true})
	h.remove("chocolate")
}

func (h *hall) remove(name string) {
	h.t.Helper()
	c := &v1.Candy{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name}}
	must(h.t, h.Client.Delete(h.t.Context(), c))
	testcluster.Eventually(h.t, name+" goes", func() error {
		err := h.Client.Get(h.t.Context(), client.ObjectKeyFromObject(c), c)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil {
			return fmt.Errorf("it is there: %+v", c.Status.Conditions)
		}
		return nil
	})
}

func TestBadInputIsRefused(t *testing.T) {
	h := open(t)
	for field, spec := range map[string]v1.CandySpec{
		"spec.flavor": {Flavor: "sour"}, "spec.machine": {Flavor: "dark", Machine: "http://evil"}, "spec.attempts": {Flavor: "dark", Attempts: 1000},
	} {
		c := &v1.Candy{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, GenerateName: "c-"}, Spec: spec}
		if err := h.Client.Create(t.Context(), c); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%+v: %v", spec, err)
		}
	}
}
