package envtest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/engine"
	"github.com/governor-dev/governor/kube"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/dynamic"
)

const accountApp = "account"

// accountPlanner declares a Secret with a password, and nothing else.
type accountPlanner struct {
	lifecycle.NoConditions[*dynamic.Object, struct{}]
}

func (accountPlanner) Resources(want *dynamic.Object, _ struct{}) ([]lifecycle.Object, error) {
	labels := map[string]string{lifecycle.LabelApp: accountApp, lifecycle.LabelInstance: want.GetName()}
	return []lifecycle.Object{lifecycle.Password{}.Secret(want.GetName(), labels, map[string]string{"uri": "postgresql://app:$(password)@db"})}, nil
}

func (accountPlanner) Next(*dynamic.Object, struct{}, time.Time) lifecycle.Decision {
	return lifecycle.First()
}

func (accountPlanner) Effect(*dynamic.Object, struct{}, lifecycle.Step) (during, after struct{}) {
	return struct{}{}, struct{}{}
}

func (accountPlanner) Status(*dynamic.Object, struct{}) {}

func accountDriver(kube.Access) lifecycle.Driver[*dynamic.Object, struct{}] {
	return dynamicDriver[struct{}]{counts: newCounts(), observe: func(context.Context, *dynamic.Object) (w struct{}, err error) { return w, nil }}
}

// passwordIn waits until the Secret has a password that differs from the given one.
func passwordIn(t *testing.T, namespace, name, other string) (secret *corev1.Secret, password string) {
	t.Helper()
	eventually(t, "the Secret has another password", func() (err error) {
		if secret, err = get(t, &corev1.Secret{}, namespace, name); err != nil {
			return err
		}
		if password = string(secret.Data[lifecycle.KeyPassword]); password == "" || password == other || secret.DeletionTimestamp != nil {
			return errors.New("it has not")
		}
		return nil
	})
	return secret, password
}

// A password is made once. It outlives the operator, and a user's own stays. A lost one is made again.
func TestPasswords(t *testing.T) {
	namespace, kind := newNamespace(t), installDynamic(t, "Account")
	register := func(op *operator) {
		must(t, engine.Register(op.engine, engine.App[*dynamic.Object, struct{}]{
			Name: accountApp, New: dynamic.New(kind), Planner: accountPlanner{}, Driver: accountDriver, Owns: []client.Object{&corev1.Secret{}},
		}))
	}
	op := startOperator(t, namespace)
	register(op)
	newDynamic(t, kind, namespace, "a", map[string]any{})
	secret, first := passwordIn(t, namespace, "a", "")
	if uri := string(secret.Data["uri"]); uri != "postgresql://app:"+first+"@db" || len(first) != lifecycle.DefaultPasswordLength {
		t.Errorf("the password is %q in %q", first, uri)
	}
	dynamicReaches(t, kind, namespace, "a", "AsDeclared")
	quiet(t, namespace, op)
	op.stop()

	op = startOperator(t, namespace)
	register(op)
	t.Cleanup(func() { must(t, op.engine.Unregister(context.Background(), kind.GroupKind())) })
	newDynamic(t, kind, namespace, "b", map[string]any{})
	_, second := passwordIn(t, namespace, "b", first)
	if _, again := passwordIn(t, namespace, "a", ""); again != first {
		t.Errorf("another operator made another password: %q and %q", first, again)
	}

	secret.Data[lifecycle.KeyPassword] = []byte("a user's own")
	secret.ResourceVersion, secret.ManagedFields = "", nil
	must(t, api.Update(t.Context(), secret))
	eventually(t, "the other values follow the user's password", func() error {
		now, err := get(t, &corev1.Secret{}, namespace, "a")
		if err != nil || !strings.Contains(string(now.Data["uri"]), "a user's own") || string(now.Data[lifecycle.KeyPassword]) != "a user's own" {
			return errors.Join(errNotYet, err)
		}
		return nil
	})

	lost, err := get(t, &corev1.Secret{}, namespace, "b")
	must(t, err)
	must(t, api.Delete(t.Context(), lost))
	passwordIn(t, namespace, "b", second)
}
