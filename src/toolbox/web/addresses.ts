import { BlockList, isIP } from 'node:net'

/** Networks without public hosts: private, loopback, link-local (metadata services), shared, test, multicast, reserved. */
const RESERVED_V4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
]

/** Only one IPv6 network is public; reserved in it are tunnels (which may end at any IPv4 address) and documentation. */
const PUBLIC_V6 = ['2000::', 3] as const
const RESERVED_V6: readonly (readonly [string, number])[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
]

interface Networks {
  readonly reservedV4: BlockList
  readonly reservedV6: BlockList
  readonly publicV6: BlockList
}

/** Made on first use: a program for browsers can contain this file. */
let known: Networks | undefined

function privateNetworks(): Networks {
  known ??= {
    reservedV4: subnetList(RESERVED_V4, 'ipv4'),
    reservedV6: subnetList(RESERVED_V6, 'ipv6'),
    publicV6: subnetList([PUBLIC_V6], 'ipv6'),
  }
  return known
}

/**
 * True for a host of the public internet. IPv4 addresses in the form of IPv6 (mapped, translated, tunnelled) are not: they
 * have no legitimate use here.
 */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !privateNetworks().reservedV4.check(address, 'ipv4')
    case 6:
      return (
        !address.includes('%') &&
        privateNetworks().publicV6.check(address, 'ipv6') &&
        !privateNetworks().reservedV6.check(address, 'ipv6')
      )
    default:
      return false
  }
}

function subnetList(subnets: readonly (readonly [string, number])[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const [network, bits] of subnets) list.addSubnet(network, bits, family)
  return list
}
