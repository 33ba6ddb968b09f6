package envtest_test

import (
	"bytes"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/api/etcd/v1beta2"
	"github.com/governor-dev/governor/kube/certificate"
	"github.com/governor-dev/governor/kube/webhookcert"
	"github.com/governor-dev/governor/lifecycle"
)

func TestV1WorksWithoutConversionWebhook(t *testing.T) {
	a := newConverter(t, time.Now())
	c := etcdObject(t, "v1", "c", a.namespace, "{size: 3}")
	must(t, api.Create(t.Context(), c))
	must(t, api.Create(t.Context(), etcdObject(t, "v1beta2", "old", a.namespace, "{size: 3}")))
	a.stop()
	_, err := get(t, &v1beta2.EtcdCluster{}, a.namespace, "c")
	refused(t, "the legacy API says what is wrong", "conversion webhook for etcd.database.coreos.com/v1, Kind=EtcdCluster failed", err)
	must(t, api.Create(t.Context(), etcdObject(t, "v1", "d", a.namespace, "{size: 1}")))
	for _, name := range []string{"c", "old"} {
		v1, err := get(t, &etcdv1.EtcdCluster{}, a.namespace, name)
		must(t, err)
		v1.Spec.Size = 5
		must(t, api.Update(t.Context(), v1))
		must(t, api.Delete(t.Context(), v1))
	}
	all := &etcdv1.EtcdClusterList{}
	must(t, api.List(t.Context(), all, client.InNamespace(a.namespace)))
	if len(all.Items) != 1 {
		t.Errorf("%d objects, want the one that was not deleted", len(all.Items))
	}
}

// Invalid content in one object does not hide other objects.
func TestInvalidStoredObjectHidesNoOther(t *testing.T) {
	a := newConverter(t, time.Now())
	must(t, api.Create(t.Context(), etcdObject(t, "v1", "c", a.namespace, "{size: 5}")))
	c, err := get(t, &etcdv1.EtcdCluster{}, a.namespace, "c")
	must(t, err)
	c.Status.V1Beta2 = "{"
	must(t, api.Status().Update(t.Context(), c))
	all := &v1beta2.EtcdClusterList{}
	must(t, api.List(t.Context(), all, client.InNamespace(a.namespace)))
	if len(all.Items) != 1 || all.Items[0].Spec.Size != 5 {
		t.Errorf("%+v", all.Items)
	}
}

func TestCABundleOfCRDIsKept(t *testing.T) {
	a := newConverter(t, time.Now())
	bundle := func(d *apiextensionsv1.CustomResourceDefinition) *[]byte {
		return &d.Spec.Conversion.Webhook.ClientConfig.CABundle
	}
	t.Run("applied again", func(t *testing.T) {
		before := definitionOf(t)
		a.define(t)
		if after := definitionOf(t); len(*bundle(after)) == 0 || !bytes.Equal(*bundle(before), *bundle(after)) {
			t.Error("the install took the caBundle away")
		}
	})
	damages := map[string][]byte{"removed": nil, "other": a.foreign(t)}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			d := definitionOf(t)
			*bundle(d) = damage
			must(t, api.Update(t.Context(), d))
			a.converts(t)
		})
	}
	t.Run("removed with the definition", func(t *testing.T) {
		removeDefinition(t)
		quiet(t, a.namespace, a.operator)
		a.define(t)
		a.converts(t)
	})
	t.Run("kept by another controller", func(t *testing.T) {
		d := definitionOf(t)
		d.Annotations = map[string]string{lifecycle.AnnotationPaused: "true"}
		*bundle(d) = nil
		must(t, api.Update(t.Context(), d))
		quiet(t, a.namespace, a.operator)
		if d = definitionOf(t); len(*bundle(d)) != 0 {
			t.Error("it was written")
		}
		d.Annotations = nil
		must(t, api.Update(t.Context(), d))
		a.converts(t)
	})
	t.Run("of another operator", func(t *testing.T) {
		d := definitionOf(t)
		c := d.Spec.Conversion.Webhook.ClientConfig
		c.URL, c.CABundle = new("https://elsewhere.example.com/convert"), nil
		must(t, api.Update(t.Context(), d))
		quiet(t, a.namespace, a.operator)
		if d = definitionOf(t); len(*bundle(d)) != 0 {
			t.Error("it was written")
		}
	})
}

// foreign returns a CA bundle that did not sign the serving certificate.
func (a *adviser) foreign(t *testing.T) []byte {
	t.Helper()
	data, err := certificate.Standalone{CommonName: "ca", Names: a.options.Names}.Issue(time.Now())
	must(t, err)
	return data["ca.crt"]
}

func removeDefinition(t *testing.T) {
	t.Helper()
	must(t, api.Delete(t.Context(), definitionOf(t)))
	eventually(t, "the definition is gone", func() error {
		if err := api.Get(t.Context(), client.ObjectKey{Name: etcdClusters}, &apiextensionsv1.CustomResourceDefinition{}); !apierrors.IsNotFound(err) {
			return errNotYet
		}
		return nil
	})
}

// The test runs a whole renewal, while legacy objects are converted continuously.
func TestNoConversionFailsDuringRenewal(t *testing.T) {
	now := time.Now()
	a := newConverter(t, now.AddDate(0, 0, -61))
	stop := a.convertsWithoutEnd(t)
	first := a.secret(t)
	a.naps(t)
	a.clock.SetTime(now)
	eventually(t, "the next certificate is prepared", func() error {
		if len(a.secret(t).Data["next.crt"]) == 0 {
			return errNotYet
		}
		return nil
	})
	a.injected(t)
	eventually(t, "the next certificate is promoted", func() error {
		a.clock.Step(time.Minute)
		if s := a.secret(t); len(s.Data["next.crt"]) != 0 || bytes.Equal(s.Data["tls.crt"], first.Data["tls.crt"]) {
			return errNotYet
		}
		return nil
	})
	a.injected(t)
	if n := stop(); n < 10 {
		t.Errorf("converted %d times only", n)
	}
}

func (a *adviser) convertsWithoutEnd(t *testing.T) (stop func() int64) {
	t.Helper()
	var over atomic.Bool
	var n atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !over.Load() {
			u := etcdObject(t, "v1beta2", "asked", a.namespace, "{size: 1}")
			if err := api.Create(t.Context(), u, client.DryRunAll); err != nil {
				t.Errorf("conversion %d: %v", n.Load(), err)
			}
			n.Add(1)
		}
	}()
	return func() int64 {
		enough := n.Load() + 10 // also after the last change
		eventually(t, "some more are converted", func() error {
			if n.Load() < enough {
				return errNotYet
			}
			return nil
		})
		over.Store(true)
		<-done
		return n.Load()
	}
}

// A replica that is not the leader converts too.
func TestStandbyReplicaConverts(t *testing.T) {
	leader := newConverter(t, time.Now())
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l", Namespace: leader.namespace}}
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: new("leader"), LeaseDurationSeconds: new(int32(3600)),
		AcquireTime: new(metav1.NowMicro()), RenewTime: new(metav1.NowMicro()),
	}
	must(t, api.Create(t.Context(), lease))
	other := *leader
	other.port, other.serving = freePort(t), webhookcert.NewServing()
	other.manage = func(o *ctrl.Options) {
		o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = true, "l", leader.namespace
	}
	other.run(t)
	leader.stop()
	other.define(t)
	other.converts(t)
	select {
	case <-other.mgr.Elected():
		t.Error("it leads, so this test proves nothing")
	default:
	}
}

// The installed roles suffice for the CRD.
func TestInstalledRolesSufficeForConversion(t *testing.T) {
	install(t)
	asOperator.Store(t.Name(), true)
	a := newConverter(t, time.Now(), func(a *adviser) {
		a.options.Namespace, a.options.Configuration = "governor-system", "governor"
	})
	s := a.secret(t)
	must(t, api.Delete(t.Context(), s))
	a.replaced(t, s)
	a.converts(t)
}

// Objects from before Governor were stored as v1beta2, without a schema and with the
// status in the same object. The installation takes them over in place.
func TestObjectsOfLegacyOperatorAreTakenOver(t *testing.T) {
	a := newConverter(t, time.Now())
	removeDefinition(t)
	must(t, api.Create(t.Context(), legacyDefinition(t)))
	eventually(t, "an object of that time is made", func() error {
		u := etcdObject(t, "v1beta2", "old", a.namespace, "{size: 3, version: 3.1.10, backup: {maxBackups: 5}, pod: {busyboxImage: b}}")
		u.Object["status"] = map[string]any{"phase": "Running", "size": int64(3)}
		return client.IgnoreAlreadyExists(api.Create(t.Context(), u))
	})
	rewrite(t, "/registry/apiextensions.k8s.io/customresourcedefinitions/"+etcdClusters,
		`"preserveUnknownFields":false`, `"preserveUnknownFields":true`)
	eventually(t, "unknown fields are preserved, as then", func() error {
		if !definitionOf(t).Spec.PreserveUnknownFields {
			return errNotYet
		}
		return nil
	})
	a.define(t)
	a.converts(t)
	var v1 *etcdv1.EtcdCluster
	eventually(t, "it is readable in v1", func() (err error) {
		v1, err = get(t, &etcdv1.EtcdCluster{}, a.namespace, "old")
		return err
	})
	if v1.Spec.Size != 3 || v1.Spec.Version != "3.1.10" || v1.Spec.Storage.Medium != etcdv1.MediumEphemeral || v1.Spec.TLS.Mode != etcdv1.TLSModeDisabled {
		t.Errorf("it means %+v", v1.Spec)
	}
	v1.Spec.Size = 5
	must(t, api.Update(t.Context(), v1))
	a.stop()
	if _, err := get(t, &etcdv1.EtcdCluster{}, a.namespace, "old"); err != nil {
		t.Errorf("once written it is stored as v1 and needs no conversion: %v", err)
	}
}

// legacyDefinition returns the CRD of the legacy operator.
func legacyDefinition(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	d := &apiextensionsv1.CustomResourceDefinition{}
	must(t, yaml.Unmarshal([]byte(`{metadata: {name: etcdclusters.etcd.database.coreos.com}, spec: {
  group: etcd.database.coreos.com, scope: Namespaced,
  names: {kind: EtcdCluster, listKind: EtcdClusterList, plural: etcdclusters, singular: etcdcluster, shortNames: [etcdc]},
  versions: [{name: v1beta2, served: true, storage: true, schema: {openAPIV3Schema: {
    type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`), d))
	return d
}
