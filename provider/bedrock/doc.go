// Package bedrock is the wire JSON of Amazon Bedrock's Converse.
package bedrock
