package e2e_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
	"github.com/governor-dev/governor/lifecycle/preview"
)

// preview asks the operator for a preview of the edit.
func (c *cluster) preview(t *testing.T, edit func(*etcdv1.EtcdClusterSpec)) (report preview.Report) {
	t.Helper()
	return c.ask(t, preview.Update, edit)
}

// ask previews the edit, or the deletion.
func (c *cluster) ask(t *testing.T, question string, edit func(*etcdv1.EtcdClusterSpec)) preview.Report {
	t.Helper()
	return c.askUntil(t, question, edit, func(r preview.Report) bool { return r.Settles() })
}

// askUntil asks until the preview is as expected.
func (c *cluster) askUntil(t *testing.T, question string, edit func(*etcdv1.EtcdClusterSpec), expected func(preview.Report) bool) (report preview.Report) {
	t.Helper()
	eventually(t, "a preview is given", func(ctx context.Context) error {
		obj := &etcdv1.EtcdCluster{}
		if err := api.Get(ctx, c.key, obj); err != nil {
			return err
		}
		edit(&obj.Spec)
		obj.Annotations = map[string]string{lifecycle.AnnotationPreview: question}
		if err := api.Update(ctx, obj, client.DryRunAll); err != nil {
			return err
		}
		var ok bool
		if report, ok = preview.Decode(obj.Annotations[lifecycle.AnnotationPreview]); !ok || late(report) || !expected(report) {
			return fmt.Errorf("%w: it is %+v", errNotYet, report)
		}
		return nil
	})
	return report
}

func (c *cluster) history(t *testing.T) history.Log {
	t.Helper()
	cm := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: c.key.Namespace, Name: history.Name("EtcdCluster", c.key.Name)}
	if err := api.Get(t.Context(), key, cm); err != nil {
		t.Fatal(err)
	}
	book, err := history.Decode(cm.Data[history.Key])
	if err != nil {
		t.Fatal(err)
	}
	return book
}

func inShort(steps []preview.Step) (all []string) {
	for _, s := range steps {
		all = append(all, fmt.Sprintf("%s %s %s", s, s.Class, s.Reason))
	}
	return all
}

func taken(entries []history.Entry) (all []string) {
	for _, e := range entries {
		if e.Result == history.ResultSucceeded {
			all = append(all, fmt.Sprintf("%s %s %s", e.Step, e.Step.Class, e.Step.Reason))
		}
	}
	return all
}
