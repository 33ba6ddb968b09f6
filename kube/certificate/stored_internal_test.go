package certificate

import (
	_ "embed"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// storedSecrets are Secrets that the build before this package has written: both rotations
// at noon, and in the middle of a rotation.
//
//go:embed testdata/stored.json
var storedSecrets []byte

type storedData struct {
	Application map[string]world
	Webhook     map[string]secretData
}

func readStored(t *testing.T) storedData {
	t.Helper()
	var s storedData
	if err := json.Unmarshal(storedSecrets, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestUpgradeKeepsApplicationSecrets(t *testing.T) {
	stored := readStored(t).Application
	fresh, preparing := stored["fresh"], stored["preparing"]
	if after := fresh.after(t, noon); !cmp.Equal(fresh, after) {
		t.Errorf("an upgrade changes a Secret: %s", cmp.Diff(fresh, after))
	}
	if after := preparing.after(t, after(7, 1)); !cmp.Equal(preparing, after) {
		t.Errorf("an upgrade changes a Secret during a rotation: %s", cmp.Diff(preparing, after))
	}
	result, _ := preparing.turn(t, after(7, 31))
	if len(result.Issued) != 1 || result.Issued[0].Reason != ReasonSettled {
		t.Errorf("the rotation does not continue: %v", result.Issued)
	}
}

func TestUpgradeKeepsTheWebhookSecret(t *testing.T) {
	stored := readStored(t).Webhook
	if d := standalone.Decide(stored["fresh"], [][]byte{stored["fresh"][trust]}, noon); d.Action != ActionKeep {
		t.Errorf("an upgrade rotates: %+v", d)
	}
	prepared, settled := stored["prepared"], noon.AddDate(0, 0, 61).Add(standaloneSettle)
	d := standalone.Decide(prepared, [][]byte{prepared[trust]}, settled.Add(-1))
	if d.Action != ActionKeep || !d.Next.Equal(settled) {
		t.Errorf("an upgrade during a rotation changes it: %+v", d)
	}
	if d := standalone.Decide(prepared, [][]byte{prepared[trust]}, settled); d.Action != ActionPromote {
		t.Errorf("the rotation does not continue: %+v", d)
	}
}
