package legacy

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// CarryV1 stores the v1 object in the v1beta2 object, with the fields of v1 that this release of
// Governor does not know. During an upgrade of Governor, a replica of the former release
// converts objects of the new definition.
func CarryV1(in, out map[string]any) error {
	raw, err := json.Marshal(map[string]any{"spec": in["spec"], "status": in["status"]})
	if err != nil {
		return err
	}
	return unstructured.SetNestedField(out, string(raw), "status", "v1")
}

// RestoreV1 adds to the v1 object the fields that CarryV1 kept and that the types of this
// release lack.
func RestoreV1(in, out map[string]any) error {
	raw, ok, err := unstructured.NestedString(in, "status", "v1")
	if err != nil || !ok || raw == "" {
		return err
	}
	var whole, known map[string]any
	var typed keptV1
	if err := json.Unmarshal([]byte(raw), &whole); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(raw), &typed); err != nil {
		return err
	}
	again, err := json.Marshal(typed)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(again, &known); err != nil {
		return err
	}
	for _, part := range []string{"spec", "status"} {
		if out[part] = graft(whole[part], known[part], out[part]); out[part] == nil {
			delete(out, part)
		}
	}
	return nil
}

// graft applies the changes of the known fields to the whole object. It replaces lists.
func graft(whole, known, now any) any {
	if reflect.DeepEqual(known, now) {
		return whole
	}
	w, isMap := whole.(map[string]any)
	k, wasKnown := known.(map[string]any)
	n, staysMap := now.(map[string]any)
	if !isMap || !wasKnown || !staysMap {
		return now
	}
	for key := range k {
		if _, ok := n[key]; !ok {
			delete(w, key)
		}
	}
	for key := range n {
		if w[key] = graft(w[key], k[key], n[key]); w[key] == nil {
			delete(w, key)
		}
	}
	return w
}
