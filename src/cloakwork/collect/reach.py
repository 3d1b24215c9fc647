"""How the parts of the collector reach a broker: who they are, what they trust, and why it did not work."""

import socket
import ssl

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from cloakwork.errors import InputError
from cloakwork.mqtt import BrokerAddress


def context_of(broker: BrokerAddress) -> ssl.SSLContext | None:
    """What is trusted, None where nothing is encrypted; refused where the file of certificates cannot be read."""
    if not broker.tls:
        return None
    try:
        return ssl.create_default_context(cafile=None if broker.authority is None else str(broker.authority))
    except (OSError, ssl.SSLError):
        raise InputError(f"{broker.authority}: cannot be read. Give a file of certificates in PEM form.") from None


def client_for(broker: BrokerAddress, context: ssl.SSLContext | None, client_id: str, *, lasting: bool) -> paho.Client:
    """A client that is not connected yet; the session of a `lasting` one stays, and it acknowledges by hand."""
    client = paho.Client(
        CallbackAPIVersion.VERSION2,
        client_id=client_id,
        clean_session=not lasting,
        protocol=MQTTProtocolVersion.MQTTv311,
        manual_ack=lasting,
    )
    if broker.user is not None:
        client.username_pw_set(broker.user, broker.password)
    if context is not None:
        client.tls_set_context(context)
    return client


def why(problem: Exception, broker: BrokerAddress) -> str:
    """Why a broker could not be reached, in words."""
    where = f"{broker.host}:{broker.port}"
    if isinstance(problem, ssl.SSLCertVerificationError):
        return f"the certificate of {where} is not trusted ({problem.verify_message}). Give its authority with --ca"
    if isinstance(problem, ssl.SSLError):
        return f"{where} does not speak TLS as it should ({problem.reason})"
    if isinstance(problem, socket.gaierror):
        return f"the host {broker.host} is not found"
    if isinstance(problem, TimeoutError):
        return f"{where} does not answer"
    return f"{where} cannot be reached ({getattr(problem, 'strerror', None) or type(problem).__name__})"
