package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/cli-runtime/pkg/resource"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/governor-dev/governor/lifecycle/preview"
)

// merge patches the object.
func (t *target) merge(ctx context.Context, patch map[string]any, o metav1.PatchOptions) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	return t.client.Patch(ctx, t.GetName(), types.MergePatchType, raw, o)
}

// edits builds a merge patch from PATH=VALUE pairs.
func edits(all []string) (map[string]any, error) {
	patch := map[string]any{}
	for _, edit := range all {
		path, value, ok := strings.Cut(edit, "=")
		keys := strings.Split(strings.TrimPrefix(path, "."), ".")
		if !ok || slices.Contains(keys, "") || strings.ContainsAny(path, "[]") {
			return nil, fmt.Errorf("--set %s cannot be read: write a path and a value, such as spec.size=5; use -f for lists", edit)
		}
		if err := unstructured.SetNestedField(patch, valueOf(value), keys...); err != nil {
			return nil, fmt.Errorf("--set %s contradicts another --set: %w", edit, err)
		}
	}
	return patch, nil
}

// valueOf parses integers, booleans and null; any other value is a string, also 3.6,
// because Kubernetes' APIs have versions and no fractions. A quoted value is a string.
func valueOf(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	switch text {
	case "true", "false":
		return text == "true"
	case "null":
		return nil
	}
	if s, err := strconv.Unquote(text); err == nil {
		return s
	}
	return text
}

// askAboutFile requests the plan of applying the file.
func (p *plan) askAboutFile(ctx context.Context, args []string) (*target, *unstructured.Unstructured, error) {
	infos, err := p.builder().FilenameParam(false, &resource.FilenameOptions{Filenames: []string{p.file}}).Do().Infos()
	if err != nil {
		return nil, nil, err
	}
	if len(infos) != 1 {
		return nil, nil, fmt.Errorf("%s has %d objects: a plan is about one", p.file, len(infos))
	}
	t, err := p.target(infos[0])
	if err != nil {
		return nil, nil, err
	}
	if name := strings.Join(args, "/"); name != "" && !strings.HasSuffix(name, "/"+t.GetName()) {
		return nil, nil, fmt.Errorf("%s is about %s, not about %s", p.file, t, name)
	}
	answer, err := t.apply(ctx)
	return t, answer, err
}

// apply does a dry run of kubectl apply with the target's content.
func (t *target) apply(ctx context.Context) (*unstructured.Unstructured, error) {
	wanted := &unstructured.Unstructured{Object: asking(t.DeepCopy().Object, preview.Update)}
	live, err := t.client.Get(ctx, t.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return t.client.Create(ctx, wanted, metav1.CreateOptions{
			DryRun: dryRun.DryRun, FieldManager: dryRun.FieldManager, FieldValidation: dryRun.FieldValidation,
		})
	}
	if err != nil {
		return nil, err
	}
	if appliedByServer(live) {
		return t.applyByServer(ctx, wanted)
	}
	return t.applyByClient(ctx, live, wanted)
}

// appliedByServer reports whether kubectl apply --server-side owns fields.
func appliedByServer(live *unstructured.Unstructured) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == "kubectl" && e.Operation == metav1.ManagedFieldsOperationApply
	})
}

func (t *target) applyByServer(ctx context.Context, wanted *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(wanted)
	if err != nil {
		return nil, err
	}
	o := dryRun
	o.FieldManager, o.Force = "kubectl", new(true)
	return t.client.Patch(ctx, t.GetName(), types.ApplyPatchType, raw, o)
}

// applyByClient applies like kubectl's client-side apply: it also removes the fields that
// only the last applied file has.
func (t *target) applyByClient(ctx context.Context, live, wanted *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
	modified, err := json.Marshal(wanted)
	if err != nil {
		return nil, err
	}
	current, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	original := []byte(live.GetAnnotations()[lastApplied])
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current)
	if err != nil {
		return nil, fmt.Errorf("cannot compare the file with what was applied before: %w", err)
	}
	return t.client.Patch(ctx, t.GetName(), types.MergePatchType, patch, dryRun)
}
