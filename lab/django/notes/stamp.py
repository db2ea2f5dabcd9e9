"""Says of each answer which one it is: a cache hit repeats an earlier one's."""

import secrets


class Stamp:
    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        response = self.get_response(request)
        response["X-Origin-Request"] = secrets.token_hex(8)
        return response
