package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

const typeCosignature = 4

type cosignatureVerifier struct {
	name string
	key  ed25519.PublicKey
}

func (v *cosignatureVerifier) Name() string    { return v.name }
func (v *cosignatureVerifier) KeyHash() uint32 { return keyHash(v.name, v.key) }
func (v *cosignatureVerifier) Verify(text, signature []byte) bool {
	if len(signature) != 8+ed25519.SignatureSize {
		return false
	}
	timeS := binary.BigEndian.Uint64(signature)
	return ed25519.Verify(v.key, cosigned(timeS, text), signature[8:])
}

type cosigner struct {
	name  string
	key   ed25519.PrivateKey
	timeS uint64
}

func (s *cosigner) Name() string    { return s.name }
func (s *cosigner) KeyHash() uint32 { return keyHash(s.name, s.key.Public().(ed25519.PublicKey)) }
func (s *cosigner) Sign(text []byte) ([]byte, error) {
	signature := make([]byte, 8)
	binary.BigEndian.PutUint64(signature, s.timeS)
	return append(signature, ed25519.Sign(s.key, cosigned(s.timeS, text))...), nil
}

func cosigned(timeS uint64, text []byte) []byte {
	return append([]byte(fmt.Sprintf("cosignature/v1\ntime %d\n", timeS)), text...)
}

func keyHash(name string, key ed25519.PublicKey) uint32 {
	sum := sha256.Sum256(append([]byte(name+"\n\x04"), key...))
	return binary.BigEndian.Uint32(sum[:])
}
