// Package bedrock reads the wire JSON of Amazon Bedrock's Converse. Nothing writes it: no client
// speaks it.
package bedrock
