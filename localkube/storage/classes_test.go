package storage

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestClassesAreTheirOwnSettings(t *testing.T) {
	for _, class := range Classes() {
		got, err := settingsOf(class, &corev1.PersistentVolumeClaim{})
		if want := (settings{volumeType: class.Name}); err != nil || got != want {
			t.Errorf("class %s: got %+v, %v, want %+v", class.Name, got, err, want)
		}
	}
}

func TestSettingsOf(t *testing.T) {
	for name, test := range map[string]struct {
		parameters, annotations map[string]string
		want                    settings
		wantErr                 []string
	}{
		"no parameters": {want: settings{volumeType: TypeLocal}},
		"network, enforced": {
			parameters: map[string]string{"type": "network", "enforceSize": "true"},
			want:       settings{volumeType: TypeNetwork, enforceSize: true},
		},
		"enforced by the claim": {
			annotations: map[string]string{EnforceSizeAnnotation: "true"},
			want:        settings{volumeType: TypeLocal, enforceSize: true},
		},
		"the claim wins": {
			parameters:  map[string]string{"enforceSize": "true"},
			annotations: map[string]string{EnforceSizeAnnotation: "false"},
			want:        settings{volumeType: TypeLocal},
		},
		"unknown parameter": {
			parameters: map[string]string{"fsType": "xfs"},
			wantErr:    []string{"fsType", "xfs", "enforceSize", "type"},
		},
		"unknown value": {
			parameters: map[string]string{"type": "nfs"},
			wantErr:    []string{"type", "nfs", "local", "network"},
		},
		"unknown annotation value": {
			annotations: map[string]string{EnforceSizeAnnotation: "yes"},
			wantErr:     []string{EnforceSizeAnnotation, "yes", "true", "false"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			class := &storagev1.StorageClass{Parameters: test.parameters}
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations}}
			got, err := settingsOf(class, claim)
			checkError(t, err, test.wantErr)
			if err == nil && got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestCheckClaim(t *testing.T) {
	modes := func(modes ...corev1.PersistentVolumeAccessMode) corev1.PersistentVolumeClaimSpec {
		return corev1.PersistentVolumeClaimSpec{AccessModes: modes}
	}
	for name, test := range map[string]struct {
		spec       corev1.PersistentVolumeClaimSpec
		volumeType string
		wantErr    []string
	}{
		"local, one node":    {spec: modes(corev1.ReadWriteOnce, corev1.ReadWriteOncePod), volumeType: TypeLocal},
		"local, many nodes":  {spec: modes(corev1.ReadWriteMany), volumeType: TypeLocal, wantErr: []string{"ReadWriteMany", TypeLocal, "ReadWriteOnce"}},
		"network, any":       {spec: modes(corev1.ReadWriteOnce, corev1.ReadWriteMany, corev1.ReadOnlyMany), volumeType: TypeNetwork},
		"selector":           {spec: corev1.PersistentVolumeClaimSpec{Selector: &metav1.LabelSelector{}}, wantErr: []string{"selector"}},
		"snapshot":           {spec: corev1.PersistentVolumeClaimSpec{DataSource: &corev1.TypedLocalObjectReference{}}, wantErr: []string{"dataSource"}},
		"snapshot elsewhere": {spec: corev1.PersistentVolumeClaimSpec{DataSourceRef: &corev1.TypedObjectReference{}}, wantErr: []string{"dataSource"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkClaim(&corev1.PersistentVolumeClaim{Spec: test.spec}, test.volumeType)
			checkError(t, err, test.wantErr)
		})
	}
}

// checkError checks that there is an error exactly if words are wanted in it,
// and that it has them all.
func checkError(t *testing.T, err error, words []string) {
	t.Helper()
	if (err != nil) != (len(words) > 0) {
		t.Fatalf("got error %v, want one with %q", err, words)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q lacks %q", err, word)
		}
	}
}
